"""Colours that everybody can read: WCAG 2.2 AA, computed from the tokens of the style sheet."""

import re
from pathlib import Path

import pytest

import understudy.web

SHEET = (Path(understudy.web.__file__).parent / "static" / "understudy.css").read_text()

TEXT = [
    (ink, paper)
    for ink in ("ink", "muted", "accent", "accent-strong")
    for paper in ("paper", "surface")
] + [
    ("on-accent", "accent"),
    ("on-accent", "accent-strong"),
    ("muted", "sunken"),
    ("ink", "sunken"),
    ("accent-strong", "tint"),
    ("good", "good-tint"),
    ("warn", "warn-tint"),
    ("ink", "warn-tint"),
    ("muted", "warn-tint"),
    ("bad", "bad-tint"),
    ("bad", "surface"),
    ("bad", "paper"),
    ("good", "paper"),
]
EDGES = [("edge", "paper"), ("edge", "surface"), ("accent", "sunken"), ("bad", "sunken"),
         ("warn", "sunken")]  # fmt: skip


def tokens(block):
    return dict(re.findall(r"--([a-z-]+):\s*(#[0-9a-f]{6})", block))


def themes():
    light, dark = SHEET.split("@media (prefers-color-scheme: dark)")
    plain = tokens(light.split(":root {")[1].split("}")[0])
    return {"light": plain, "dark": plain | tokens(dark.split("}")[0])}


def luminance(colour):
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_the_formula_knows_black_and_white():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_and_edges(theme):
    known = themes()[theme]
    assert len(known) >= 17
    low = [(a, b, contrast(known[a], known[b])) for a, b in TEXT]
    assert [each for each in low if each[2] < 4.5] == []
    low = [(a, b, contrast(known[a], known[b])) for a, b in EDGES]
    assert [each for each in low if each[2] < 3] == []


def test_every_colour_is_a_token():
    body = SHEET.split("*, *::before")[1]
    assert re.findall(r"#[0-9a-fA-F]{3,8}\b", body) == []
    assert not re.search(r"\b(rgb|hsl|oklch)a?\(", body)
