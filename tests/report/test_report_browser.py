"""The report in a real browser: offline, narrow, dark, on paper."""

from __future__ import annotations

import shutil

import pytest

from understudy import report

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")


@pytest.fixture(scope="module")
def browser():
    sync = pytest.importorskip("playwright.sync_api")
    with sync.sync_playwright() as play:
        opened = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


def test_it_opens_offline_and_fits_a_phone_and_a_page(browser, made, tmp_path):
    file = tmp_path / "report.html"
    file.write_text(report.render(made, name="people.release", digest="0" * 64))
    context = browser.new_context(
        offline=True, viewport={"width": 400, "height": 800}, color_scheme="dark"
    )
    page = context.new_page()
    said, asked = [], []
    page.on("console", lambda message: said.append(message.text))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(file.as_uri())
    assert asked == [file.as_uri()]
    assert said == []  # the policy blocked nothing, for there is nothing to block
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.emulate_media(color_scheme="light")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != dark

    # On paper every figure is as wide as the page at most, and lower than one.
    page.emulate_media(media="print", color_scheme="dark")
    page.set_viewport_size({"width": 680, "height": 990})  # A4 less its margins
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    boxes = page.evaluate(
        "[...document.querySelectorAll('figure')].map(f => {"
        "const b = f.getBoundingClientRect();"
        "return [b.left, b.right, b.height, getComputedStyle(f).breakInside]})"
    )
    assert len(boxes) == 2 + len(made.schema.modelled)
    assert all(
        left >= 0 and right <= 680 and height < 990 and cut == "avoid"
        for left, right, height, cut in boxes
    )
    pdf = page.pdf(prefer_css_page_size=True)
    assert pdf.startswith(b"%PDF")
    context.close()


@pytest.mark.parametrize("width", [400, 1280])
def test_tables_of_columns_stay_in_their_columns_with_long_values(browser, made, tmp_path, width):
    file = tmp_path / "report.html"
    file.write_text(report.render(made))
    page = browser.new_page(viewport={"width": width, "height": 800})
    page.goto(file.as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true })")
    page.evaluate(
        "document.querySelectorAll('.columns tbody th').forEach("
        "each => { each.textContent = 'Surgery-Cardiovascular/Thoracic' })"
    )
    beyond = page.evaluate(
        "[...document.querySelectorAll('.columns figure')].filter(each => "
        "each.querySelector('table').getBoundingClientRect().right > "
        "each.getBoundingClientRect().right + 1).length"
    )
    assert beyond == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.close()


def test_the_keyboard_reaches_every_link_and_every_table(browser, made, tmp_path):
    file = tmp_path / "report.html"
    file.write_text(report.render(made))
    page = browser.new_page()
    page.goto(file.as_uri())
    reached = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.textContent.slice(0, 30)"))
    assert {"The promise in full", "The certificate", "age in numbers"} <= reached
    page.focus("summary")
    page.keyboard.press("Enter")
    assert page.evaluate("document.querySelector('details').open")
    page.close()
