"""How a report looks: two palettes, one sheet. Every pair of colours keeps WCAG's AA contrast."""

from __future__ import annotations

__all__ = ["CURVES", "DARK", "HEAT", "LIGHT", "TEXT_ON", "sheet"]

LIGHT = {
    "paper": "#fbfbf9",
    "card": "#ffffff",
    "ink": "#1d1f21",
    "soft": "#565b60",
    "rule": "#dddfe0",
    "accent": "#0a5c9e",
    "bar": "#5f95c4",
    "noise": "#9a3b00",
    "good": "#cfe8da",
    "rough": "#fbe7bd",
    "bad": "#f6d2cd",
    "alarm": "#a3211a",
    "heat0": "#f0f5fa",
    "heat1": "#d5e5f3",
    "heat2": "#aecde8",
    "heat3": "#7fafd8",
    "heat4": "#2f6fa8",
    "heat5": "#0e4777",
    "onlow": "#1d1f21",
    "onhigh": "#ffffff",
}
DARK = {
    "paper": "#15171a",
    "card": "#1d2024",
    "ink": "#ececea",
    "soft": "#aab0b6",
    "rule": "#363a40",
    "accent": "#7fbdf0",
    "bar": "#4f86b5",
    "noise": "#ffb27a",
    "good": "#1d4a35",
    "rough": "#574413",
    "bad": "#5f2723",
    "alarm": "#ff9d93",
    "heat0": "#1c2835",
    "heat1": "#20394f",
    "heat2": "#275071",
    "heat3": "#336d9b",
    "heat4": "#7fb3df",
    "heat5": "#c2dff7",
    "onlow": "#ececea",
    "onhigh": "#15171a",
}
HEAT = 6
"""Steps of the matrix."""
CURVES = 4
"""Looks of a line, told apart by colour and dashes."""
_LAST_LOW = 3
TEXT_ON = {
    "paper": ("ink", "soft", "accent", "alarm"),
    "card": ("ink", "soft", "accent", "alarm", "noise"),
    "good": ("ink",),
    "rough": ("ink",),
    "bad": ("ink",),
    **{f"heat{i}": ("onlow" if i <= _LAST_LOW else "onhigh",) for i in range(HEAT)},
}
"""Which colours carry text of which; held by a test."""

_SHEET = """
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;scroll-behavior:smooth}
body{margin:0;background:var(--paper);color:var(--ink);
 font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,"Noto Sans",sans-serif}
main{max-width:60rem;margin:0 auto;padding:2.5rem 1.25rem 4rem}
h1,h2,h3{line-height:1.25;font-weight:650;text-wrap:balance}
h1{font-size:1.7rem;margin:.4rem 0 1rem;letter-spacing:-.012em;font-weight:600}
h2{font-size:1.3rem;margin:0 0 .4rem;letter-spacing:-.01em}
h3{font-size:1rem;margin:1.4rem 0 .3rem}
p{margin:.5rem 0;max-width:44rem}
a{color:var(--accent);text-underline-offset:.15em}
a:focus-visible,summary:focus-visible,[tabindex]:focus-visible{outline:3px solid var(--accent);
 outline-offset:2px;border-radius:3px}
code{font:.88em/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;
 overflow-wrap:anywhere}
pre{background:var(--card);border:1px solid var(--rule);border-radius:8px;padding:.8rem 1rem;
 overflow-x:auto;white-space:pre-wrap;max-width:44rem}
section{margin:3.2rem 0 0;scroll-margin-top:1rem}
.eyebrow{color:var(--soft);font-size:.9rem;margin:0;overflow-wrap:anywhere}
.lead{color:var(--soft);margin-top:0}
.small{font-size:.86rem;color:var(--soft)}
.alarm{border:2px solid var(--alarm);color:var(--alarm);background:var(--card);border-radius:10px;
 padding:.8rem 1.1rem;font-weight:650}
.cards{display:grid;gap:1rem;grid-template-columns:repeat(auto-fit,minmax(15.5rem,1fr));
 margin:1.6rem 0 0}
.card{background:var(--card);border:1px solid var(--rule);border-radius:12px;padding:1.1rem 1.2rem}
.card h2{font-size:.9rem;font-weight:600;color:var(--soft);margin:0 0 .35rem;letter-spacing:0}
.card .big{font-size:1.6rem;line-height:1.15;font-weight:650;letter-spacing:-.02em;margin:0 0 .5rem}
.card p,.card ul{font-size:.94rem;margin:.35rem 0}
.card ul{padding-left:1.1rem}
.card li{margin:.3rem 0}
dl{display:grid;grid-template-columns:minmax(8rem,12rem) 1fr;gap:.75rem 1.4rem;margin:1rem 0}
dt{font-weight:600}
dd{margin:0}
dd p{margin:0 0 .4rem}
table{border-collapse:collapse;font-size:.9rem;margin:.8rem 0;font-variant-numeric:tabular-nums}
caption{text-align:left;color:var(--soft);padding:0 0 .4rem}
th,td{text-align:left;vertical-align:top;padding:.38rem 1rem .38rem 0;
 border-bottom:1px solid var(--rule)}
thead th{color:var(--soft);font-weight:600;border-bottom:1px solid var(--soft)}
tbody th{font-weight:500}
.facts th{color:var(--soft);font-weight:400;padding-right:1.6rem}
.facts tr:first-child>*{border-top:1px solid var(--rule)}
th.n,td.n{text-align:right}
td.n,.sizes th[scope=row],.ledger th[scope=row]{white-space:nowrap}
.ledger td:nth-child(2){min-width:15rem}
th:last-child,td:last-child{padding-right:0}
.scroll{overflow-x:auto}
figure{margin:1.2rem 0;break-inside:avoid}
figcaption{font-size:.9rem;color:var(--soft);margin:.4rem 0 0;max-width:44rem}
svg{display:block;width:100%;height:auto;overflow:visible}
svg text{font:12px/1 system-ui,-apple-system,"Segoe UI",Roboto,Arial,sans-serif;fill:var(--ink);
 font-variant-numeric:tabular-nums}
svg .soft{fill:var(--soft)}
svg .strong{font-weight:650}
.gauge{height:86px}
.gauge .good{fill:var(--good)}.gauge .rough{fill:var(--rough)}.gauge .bad{fill:var(--bad)}
.gauge line{stroke:var(--ink);stroke-width:1.5}
.bar{fill:var(--bar)}
.noise{stroke:var(--noise);stroke-width:2;fill:none}
.grid{stroke:var(--rule);stroke-width:1;fill:none}
.curve,.limit{fill:none;stroke-width:1.6;stroke-linejoin:round}
.c0{stroke:var(--accent)}.c1{stroke:var(--noise)}.c2{stroke:var(--ink);stroke-dasharray:5 3}
.c3{stroke:var(--soft);stroke-dasharray:1.6 2.4}.limit{stroke:var(--ink);stroke-dasharray:2 3}
.columns{display:grid;gap:1.6rem 2rem;grid-template-columns:repeat(auto-fill,minmax(17rem,1fr));
 margin:1.2rem 0}
.columns figure{margin:0;max-width:26rem}
.two{grid-template-columns:repeat(auto-fill,minmax(min(22rem,100%),1fr))}
.columns h3{margin:0 0 .3rem;font-size:.95rem;overflow-wrap:anywhere}
.columns h3 span{color:var(--soft);font-weight:400}
.key{display:flex;flex-wrap:wrap;gap:.3rem 1.4rem;font-size:.9rem;color:var(--soft);margin:.6rem 0;
 padding:0;list-style:none}
.key svg{display:inline-block;width:22px;height:14px;vertical-align:-2px;margin-right:.4rem}
.matrix svg{min-width:var(--least,0);max-width:var(--most,100%)}
.matrix text{font-size:11px}
details{margin:.5rem 0;font-size:.9rem}
summary{cursor:pointer;color:var(--accent);padding:.2rem 0}
.columns details{margin:.1rem 0 0;font-size:.85rem}
.hash{font-size:.85em;color:var(--soft);overflow-wrap:normal;white-space:nowrap}
footer{margin-top:4rem;padding-top:1rem;border-top:1px solid var(--rule);font-size:.86rem;
 color:var(--soft)}
@media (max-width:34rem){main{padding-top:1.5rem}h1{font-size:1.45rem}
 dl{grid-template-columns:1fr;gap:.1rem}dd{margin-bottom:.9rem}section{margin-top:2.4rem}}
@page{size:A4;margin:16mm 15mm 18mm}
@media print{:root{--paper:#ffffff}html{font-size:10.5pt}
 body{font-size:10pt;-webkit-print-color-adjust:exact;print-color-adjust:exact}main{max-width:none;padding:0}section{margin-top:8mm}
 h2,h3{break-after:avoid}.card,tr,dt,dd p,li,figure,pre{break-inside:avoid}
 .lead,.key{break-inside:avoid;break-after:avoid}p{orphans:3;widows:3}
 .columns{grid-template-columns:repeat(2,1fr);gap:6mm 10mm}.cards{grid-template-columns:repeat(3,1fr)}
 details,.card a{display:none}.matrix svg{min-width:0}a{color:inherit;text-decoration:none}
 .scroll{overflow:visible}}
"""


def sheet() -> str:
    """The style sheet; light unless the reader prefers dark, and light on paper."""
    heat = "".join(
        f".h{i}{{fill:var(--heat{i})}}.t{i}{{fill:var(--{TEXT_ON[f'heat{i}'][0]})!important}}"
        for i in range(HEAT)
    )
    return (
        f":root{{color-scheme:light dark;{_variables(LIGHT)}}}"
        f"@media screen and (prefers-color-scheme:dark){{:root{{{_variables(DARK)}}}}}"
        f"{heat}{_SHEET}"
    )


def _variables(palette: dict[str, str]) -> str:
    return "".join(f"--{name}:{colour};" for name, colour in palette.items())
