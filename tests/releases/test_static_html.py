"""A report holds nothing that acts or loads; both verifiers say so of the same pages."""

from __future__ import annotations

import contextlib
import random
import time

import pytest
from tools.verify_release import PAGE_BEGINS, report_problems

from tests.thorough import examples
from understudy import report
from understudy.errors import BundleError
from understudy.releases.static_html import HEAD, require_static

PLAIN = (
    f"{HEAD}<title>A report</title><style>p>b{{color:var(--ink)}}@media print{{}}</style></head>"
    '<body><main><p class="lead" id="x">1 &lt; 2 and 2 > 1</p><a href="#x">there</a>'
    '<svg viewBox="0 0 1 1" aria-label="a (b) &amp; @c"><path d="M0 0h1"></path></svg></main></body>'
    "</html>\n"
)

BAD = {
    "a script": "<script>alert(1)</script>",
    "a script, shouted": "<SCRIPT>alert(1)</SCRIPT>",
    "a script with a slash": "<script/x>alert(1)</script>",
    "a script after a null": "<\0script>alert(1)</script>",
    "a handler": '<p onclick="alert(1)">x</p>',
    "a handler of an image": "<img src=x onerror=alert(1)>",
    "a handler of a drawing": '<svg onload="alert(1)"></svg>',
    "a handler after a slash": '<svg/onload="alert(1)"></svg>',
    "a handler after a line": '<p class="x"\nonclick="alert(1)">x</p>',
    "a handler without quotes": "<p onclick=alert(1)>x</p>",
    "a handler in single quotes": "<p onclick='alert(1)'>x</p>",
    "javascript:": '<a href="javascript:alert(1)">x</a>',
    "javascript: in disguise": '<a href="&#106;avascript:alert(1)">x</a>',
    "data:": '<a href="data:text/html,x">x</a>',
    "a page elsewhere": '<a href="https://example.org/">x</a>',
    "a path elsewhere": '<a href="//example.org/#x">x</a>',
    "a reference in a drawing": '<svg><a xlink:href="javascript:alert(1)"></a></svg>',
    "a use": '<svg><use href="https://example.org/x.svg#a"></use></svg>',
    "an animation": '<svg><animate attributeName="href" to="javascript:alert(1)"></animate></svg>',
    "a foreign object": "<svg><foreignObject></foreignObject></svg>",
    "an image": '<img src="https://example.org/x.png">',
    "an image of data": '<img src="data:image/png;base64,AAAA">',
    "a frame": '<iframe src="https://example.org/"></iframe>',
    "a frame with a page in it": '<iframe srcdoc="&lt;script&gt;alert(1)&lt;/script&gt;"></iframe>',
    "an object": '<object data="x.swf"></object>',
    "an embedded one": '<embed src="x.swf">',
    "a form": '<form action="https://example.org/"></form>',
    "a button": '<button formaction="javascript:alert(1)">x</button>',
    "an input": "<input autofocus>",
    "a refresh": '<meta http-equiv="refresh" content="0;url=https://example.org/">',
    "another policy": '<meta http-equiv="Content-Security-Policy" content="script-src *">',
    "a base": '<base href="https://example.org/">',
    "a link": '<link rel="stylesheet" href="https://example.org/x.css">',
    "an import": '<style>@import "https://example.org/x.css";</style>',
    "an import with an attribute": '<style class="x">@import "https://example.org/x.css";</style>',
    "a style with an attribute": '<style class="x">p{}</style>',
    "an escaped import": '<style>@\\69mport "x.css";</style>',
    "an import in a drawing": '<svg><style>&#64;import "x.css";</style></svg>',
    "a url": "<style>p{background:url(https://example.org/x.png)}</style>",
    "a url, shouted": "<style>p{background:URL(https://example.org/x.png)}</style>",
    "an escaped url": "<style>p{background:u\\72l(https://example.org/x.png)}</style>",
    "a set of images": '<style>p{background:image-set("x.png" 1x)}</style>',
    "a font": "<style>@font-face{font-family:x}</style>",
    "a url in an attribute": '<p style="background:url(x.png)">x</p>',
    "a url in a colour": '<svg><rect fill="url(x.svg#a)"></rect></svg>',
    "an expression": '<p style="width:expression(alert(1))">x</p>',
    "a tag in a style sheet": '<style><p class="x">y</p></style>',
    "a title that is left open": "<title>x<p>y</p></title>",
    "a style that is left open": "<style>p{}",
    "a comment": "<!-- x -->",
    "a comment that ends early": "<!--><script>alert(1)</script>-->",
    "a section": "<![CDATA[x]]>",
    "an instruction": "<?xml version='1.0'?>",
    "a tag that is left open": "<p",
    "a tag in a tag": '<p class="<script>">x</p>',
    "text that looks like a tag": "1 < 2",
    "a closing tag with attributes": '</p class="x">',
    "a tag that closes itself": "<p/>",
    "a space too many": '<p  class="x">y</p>',
    "an attribute without a value": "<details open>x</details>",
    "no space between": '<p class="x"id="y">z</p>',
    "a template": "<template><p>x</p></template>",
    "plain text": "<plaintext>",
    "text for scripts off": "<noscript><p>x</p></noscript>",
    "mathematics": "<math><mtext></mtext></math>",
}


def refused_by_both(page: bytes) -> None:
    with pytest.raises(BundleError, match=r"report\.html"):
        require_static(page)
    try:
        problems = list(report_problems(page))
    except ValueError:
        return
    assert problems


def test_a_plain_page_is_accepted():
    assert PAGE_BEGINS == HEAD
    require_static(PLAIN.encode())
    assert list(report_problems(PLAIN.encode())) == []


@pytest.mark.parametrize("name", BAD)
def test_what_acts_or_loads_is_refused(name: str):
    for place in ("<main>", "</main>", "</style>"):
        assert place in PLAIN
        refused_by_both(PLAIN.replace(place, place + BAD[name]).encode())


def test_a_report_begins_as_one():
    for page in (b"", b"<p>welcome", b"\xef\xbb\xbf" + PLAIN.encode(), PLAIN.encode("utf-16")):
        refused_by_both(page)
    refused_by_both(PLAIN.replace("default-src 'none'", "default-src *").encode())
    refused_by_both(PLAIN.encode() + b"\xff")
    refused_by_both(PLAIN.encode() + b"\0")


@pytest.mark.parametrize("end", ["", "</style>", '">', "<script>"])
@pytest.mark.parametrize("part", ["<", "<p ", "a", "@", "a(", '<p class="'])
@pytest.mark.parametrize("start", ["", "<style>", '<p class="'])
def test_no_page_takes_long(start: str, part: str, end: str):
    """A large page, of one thing over and over: time grows with its length, and no faster."""
    page = (HEAD + start + part * (2 ** examples(19, 20) // len(part)) + end).encode()
    began = time.process_time()
    with contextlib.suppress(BundleError):
        require_static(page)
    with contextlib.suppress(ValueError):
        next(report_problems(page), None)
    assert time.process_time() - began < 2


def test_verifiers_agree_on_mutated_pages(made):
    """Characters that matter are put in, taken out or doubled anywhere in a real report."""
    page = report.render(made)
    pieces = [*'<>"= /&(@-x\n', "\\", "'", "<p>", "</style>", "<style>", "<title>", "</title>"]
    pieces += [' href="#x"', ' href="x"', "url(", "var("]
    refused = 0
    for key in range(300):
        rng = random.Random(key)
        at = rng.randrange(len(HEAD) // 2, len(page))
        cut = rng.choice([0, 0, 1, 2, 10])
        data = (page[:at] + rng.choice(pieces) + page[at + cut :]).encode()
        try:
            ours = require_static(data) is not None
        except BundleError:
            ours = True
        try:
            theirs = next(report_problems(data), None) is not None
        except ValueError:
            theirs = True
        assert ours == theirs, page[at - 40 : at + 40]
        refused += ours
    assert 100 < refused < 300
