"""The page in a real browser: the whole way by keyboard on a phone, and what may happen on it.

With --thorough, pictures of every page go to build/screens, for people to look at.
"""

import contextlib
import os
import re
import shutil
import signal
import socket
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from bench import households as homes

from tests.thorough import examples, slow
from tests.web.conftest import SCHEMA, SLOW, Server, csv_bytes, put_bundle, small_table
from understudy.cli.app import main
from understudy.privacy import Budget
from understudy.progress import STAGES
from understudy.web.people import People, Role
from understudy.web.workspace import Workspace

playwright = pytest.importorskip("playwright.sync_api", reason="playwright drives the browser")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium here; on Debian: apt-get install chromium"
)

SCREENS = Path(__file__).parents[2] / "build" / "screens"
WORD = "a long enough word"
PATIENCE = 240_000
PLACES = (
    "tables", "releases", "jobs", "ledger", "audits", "import", "tables/people/schema/text",
    "releases/people/verify", "releases/people/report", "none",
)  # fmt: skip


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def phone(browser):
    context = browser.new_context(viewport={"width": 400, "height": 800}, accept_downloads=True)
    context.set_default_timeout(PATIENCE)
    playwright.expect.set_options(timeout=PATIENCE)
    yield context.new_page()
    context.close()


NAMELESS = """() => [...document.querySelectorAll("svg, img, canvas")].filter(each =>
  each.getAttribute("aria-hidden") !== "true" && each.getAttribute("alt") !== "" &&
  !(each.getAttribute("aria-label") || each.getAttribute("alt"))).map(each => each.outerHTML)"""
"""Figures that somebody who does not see them would miss."""

FAINT = """() => {
  const parts = colour => colour.match(/[\\d.]+/g).map(Number);
  const luminance = ([r, g, b]) => [r, g, b].map(c => c / 255)
    .map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, at) => sum + c * [0.2126, 0.7152, 0.0722][at], 0);
  const ground = each => {
    for (; each; each = each.parentElement) {
      const found = parts(getComputedStyle(each).backgroundColor);
      if (found.length === 3 || found[3] === 1) return found;
    }
    return [255, 255, 255];
  };
  const faint = [];
  for (const each of document.body.querySelectorAll("*")) {
    const text = [...each.childNodes].filter(n => n.nodeType === 3).map(n => n.data).join("").trim();
    if (!text || each.closest("svg") || !each.checkVisibility({visibilityProperty: true})) continue;
    const style = getComputedStyle(each);
    const [low, high] = [luminance(parts(style.color)), luminance(ground(each))].sort((a, b) => a - b);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    const ratio = (high + 0.05) / (low + 0.05);
    if (ratio < (large ? 3 : 4.5)) faint.push([text.slice(0, 40), style.color, ratio]);
  }
  return faint;
}"""
"""Text whose contrast is below WCAG's AA, as the browser paints it."""


def picture(page, name, width=400, scheme="light"):
    """Nothing may stick out at a page's side, be faint or have no name; --thorough keeps a picture."""
    page.set_viewport_size({"width": width, "height": 800})
    page.emulate_media(color_scheme=scheme)
    beyond = page.evaluate(
        "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    assert beyond <= 0, (name, width, beyond)
    assert page.evaluate(NAMELESS) == [], name
    assert page.evaluate(FAINT) == [], (name, scheme)
    if examples(0, 1):
        SCREENS.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=SCREENS / f"{name}-{width}-{scheme}.png", full_page=True)


class Keys:
    """Somebody without a mouse."""

    def __init__(self, page):
        self.page = page

    def to(self, locator, most=120):
        """Press Tab until something has the focus."""
        wanted = locator.element_handle()
        for _ in range(most):
            self.page.keyboard.press("Tab")
            if self.page.evaluate("(wanted) => document.activeElement === wanted", wanted):
                return self
        raise AssertionError(f"{locator} cannot be reached by keyboard")

    def type(self, text):
        self.page.keyboard.press("Control+A")
        self.page.keyboard.type(text)
        return self

    def press(self, key="Enter"):
        self.page.keyboard.press(key)
        return self


def test_the_whole_way_by_keyboard_on_a_phone(phone, tmp_path, capsys):
    rows = tmp_path / "people.csv"
    rows.write_bytes(csv_bytes(small_table()))
    server = Server(tmp_path / "desk").start()
    page, keys = phone, Keys(phone)
    try:
        page.goto(f"{server.base}/enter?token=wrong")
        assert page.get_by_role("alert").inner_text().startswith("That token is not")
        picture(page, "01-login")
        page.goto(server.url)
        assert "token" not in page.url
        picture(page, "02-no-table")

        # Upload; choosing a file opens a window of the system, which no test can type into.
        keys.to(page.get_by_role("link", name="Add a table")).press()
        page.wait_for_url("**/tables/new")
        picture(page, "03-upload")
        page.set_input_files("#file", rows)
        keys.to(page.get_by_role("button", name="Upload")).press()
        page.wait_for_url("**/people/schema")
        picture(page, "04-draft")

        # Review: the first question is open; one is answered by its button, a line of another by other
        # facts, the rest at once.
        assert page.locator(".review > li > details[open]").count() == 1
        no = page.get_by_role("button", name="No: every row is another person").first
        keys.to(no).press()
        page.get_by_text("leaves 2 decisions").wait_for()
        keys.to(page.get_by_role("button", name="Take it back")).press()
        page.get_by_text("leaves 3 decisions").wait_for()
        keys.to(no).press()
        page.get_by_text("One row is protected").first.wait_for()
        keys.to(page.get_by_text("Replace it by what is public").first).press()
        keys.to(page.get_by_label("All values").first).type("Aa, Bb, Cc")
        keys.to(page.get_by_role("button", name="Use these facts").first).press()
        page.get_by_text("leaves 1 decision").wait_for()
        picture(page, "04-review")
        keys.to(page.get_by_text("State everything at once")).press()
        keys.to(page.get_by_role("button", name="I have checked everything")).press()
        page.get_by_text("Every fact is confirmed").wait_for()
        picture(page, "05-confirmed")
        keys.to(page.get_by_role("link", name="Go on", exact=True)).press()
        page.wait_for_url("**/tables/people")

        keys.to(page.get_by_label("Total ε")).type("3")
        keys.to(page.get_by_label("Fix this budget for good")).press("Space")
        keys.to(page.get_by_role("button", name="Declare this budget")).press()
        page.get_by_text("left of ε = 3").wait_for()
        picture(page, "06-table")
        keys.to(page.get_by_role("link", name="Plan a release")).press()
        page.wait_for_url("**/plan")

        # Plan: another method, and ε moved by the arrow keys.
        page.locator(".figures").wait_for()
        picture(page, "07-plan")
        slider = page.get_by_role("slider")
        keys.to(slider).press("ArrowLeft")
        assert page.get_by_label("ε, the privacy").input_value() == "0.7"
        assert slider.get_attribute("aria-valuetext") == "ε = 0.7"
        keys.press("ArrowRight")
        keys.to(page.get_by_text("Other choices")).press()
        keys.to(page.get_by_label("Method")).type("gaussian")
        page.locator("[data-epsilon='1']").wait_for()
        page.get_by_text("Noise of one count").wait_for()
        assert "This release takes" in page.locator("#forecast").inner_text()
        keys.to(page.get_by_text("Title and owner")).press()
        keys.to(page.get_by_label("Name of the release")).type("People")
        page.get_by_role("button", name="Start the release").click()  # not before somebody says so
        assert page.get_by_role("button", name="Start the release").is_visible()
        keys.to(page.get_by_label("Spend this ε")).press("Space")
        keys.to(page.get_by_role("button", name="Start the release")).press()

        # Watch, and open what came out.
        page.wait_for_url("**/jobs/people")
        assert page.locator("[data-stage]").count() in (0, len(STAGES))
        page.get_by_text("The release is done").wait_for()
        picture(page, "08-done")
        keys.to(page.get_by_role("link", name="Open the release")).press()
        page.wait_for_url("**/releases/people")
        for number, question in enumerate(
            ("age >= 5", "city = 'Bb'", "smoker = 'yes' and city = 'Aa'", "agee > 1")
        ):
            keys.to(page.get_by_label("Condition")).type(question).press()
            page.locator(".answer").nth(number).wait_for()
        told = page.locator(".answer").all_inner_texts()
        assert "did you mean 'age'" in told[0]
        assert all("certified with 95 % confidence" in each for each in told[1:])
        picture(page, "09-release")
        keys.to(page.get_by_role("link", name="Report")).press()
        keys.to(page.get_by_role("link", name="Back to the release")).press()
        page.wait_for_url("**/releases/people")
        with page.expect_download() as download:
            keys.to(page.get_by_role("link", name="Download the release")).press()
        zipfile.ZipFile(download.value.path()).extractall(tmp_path)
        assert main(["verify", str(tmp_path / "people.release")]) == 0
        assert "all checks passed" in capsys.readouterr().out
        for width in (320, 385, 400):  # with all its places in one line
            page.set_viewport_size({"width": width, "height": 800})
            tops = page.eval_on_selector_all(".top nav a", "all => all.map(a => a.offsetTop)")
            assert len(set(tops)) == 1, width
        with page.expect_download():
            keys.to(page.get_by_role("button", name="Download", exact=True)).press()
        page.get_by_text("the download begins by itself").wait_for()

        for number, path in enumerate(PLACES[:: examples(3, 1)], 10):
            page.goto(f"{server.base}/{path}")
            picture(page, f"{number}-{path.replace('/', '-')}")
    finally:
        code, said = server.stop()
        server.close()
    assert code == 0
    assert str(tmp_path / "desk" / "tables") not in said
    assert "Traceback" not in said


def test_what_was_typed_stays_while_other_answers_are_kept_or_refused(phone, tmp_path):
    rows = tmp_path / "people.csv"
    rows.write_bytes(csv_bytes(small_table()))
    server = Server(tmp_path / "desk").start()
    page, expect = phone, playwright.expect
    try:
        page.goto(server.url)
        page.goto(f"{server.base}/tables/new")
        page.set_input_files("#file", rows)
        page.get_by_role("button", name="Upload").click()
        page.wait_for_url("**/people/schema")
        city = page.locator(".review > li", has_text="list of values of city")
        city.locator("summary").first.click()
        city.get_by_text("Replace it by what is public").click()
        values = city.get_by_label("All values")
        values.fill("Aa, Bb, Cc, Dd")
        page.get_by_role("button", name="No: every row is another person").first.click()
        page.get_by_text("One row is protected").first.wait_for()
        expect(page.locator("details.unsaved")).to_have_count(1)
        assert values.input_value() == "Aa, Bb, Cc, Dd"
        picture(page, "04-typed")

        values.fill("Aa, Aa")
        city.get_by_role("button", name="Use these facts").click()
        page.get_by_role("alert").wait_for()
        page.wait_for_load_state()
        expect(values).to_have_value("Aa, Aa")
        values.fill("Aa, Bb, Cc, Dd")
        page.locator(".review > li").last.locator("summary").first.click()
        page.locator(".review").get_by_text("Replace it by what is public").last.click()
        page.get_by_label("Columns that may have empty cells").fill("city")
        city.get_by_role("button", name="Use these facts").click()
        page.get_by_text("Aa, Bb, Cc, Dd.").wait_for()
        expect(page.locator("details.unsaved")).to_have_count(
            1
        )  # what was kept is not typed any more
        page.goto(f"{server.base}/tables/people/plan")
        page.get_by_role("link", name="Review the schema").click()
        page.locator("details.unsaved").wait_for()
        page.get_by_role("button", name="Log out").click()
        page.wait_for_url("**/login")
        page.wait_for_function("sessionStorage.length === 0")
    finally:
        server.stop()
        server.close()


def prepared(tmp_path, bundle):
    """A workspace with a table, a release and two users."""
    desk = tmp_path / "desk"
    workspace = Workspace(desk)
    people = People(workspace.folder)
    people.add("ben", WORD, Role.ANALYST)
    people.add("ana", WORD, Role.CUSTODIAN)
    put_bundle(SimpleNamespace(folder=desk), bundle, "people")
    with workspace.incoming() as folder:
        (folder / "rows.csv").write_bytes(csv_bytes(small_table()))
        workspace.add_table("people", folder / "rows.csv", SCHEMA.dumps(), 3)
    with workspace.ledger() as ledger:
        ledger.open_dataset("people", Budget.of(1, "1e-8"), composition="basic")
    return desk


def quiet_port():
    """A free port that no connection is given by chance: below those that the system hands out."""
    for port in range(20_000 + os.getpid() % 5_000, 32_000):
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise AssertionError("no port is free")


WRAPPED = """
import sys
from understudy.cli import main
from understudy.web import jobs
jobs.command = lambda folder, lock: [sys.executable, "-c", {code!r}, str(folder), str(lock)]
sys.exit(main())
"""


@pytest.mark.slow
def test_a_server_that_goes_away_a_job_that_does_not_and_an_analyst(
    phone, browser, tmp_path, bundle
):
    desk = prepared(tmp_path, bundle)
    slow = SLOW.format(before=900, after=0, mark="")
    server = Server(desk, code=WRAPPED.format(code=slow)).start(quiet_port())
    page = phone
    try:
        page.goto(server.base)
        page.get_by_label("Name").fill("ana")
        page.get_by_label("Password").fill(WORD)
        page.get_by_role("button", name="Log in").last.click()
        page.wait_for_url("**/tables")
        page.goto(f"{server.base}/tables/people/plan?method=gaussian&variations=")
        page.get_by_label("Spend this ε").check()
        page.get_by_role("button", name="Start the release").click()
        page.locator("[data-stage=reading].now, [data-stage=playing].now").wait_for()
        picture(page, "20-running")

        # Ctrl-C: the job goes on, the page waits, and all is there when the server is back.
        code, said = server.stop()
        server.close()
        assert code == 0
        assert "1 job goes on without the web app" in said
        page.get_by_text("The server does not answer").wait_for()
        picture(page, "21-away")
        server.start(server.port)
        page.locator("#away").wait_for(state="hidden")
        page.get_by_text("Cancel…").click()
        page.get_by_text("If you cancel now, nothing is charged.").wait_for()
        page.get_by_role("button", name="Yes, cancel it").click()
        page.get_by_text("It was cancelled").wait_for()
        assert "Nothing was charged." in page.locator("main").inner_text()
        picture(page, "22-cancelled")

        other = browser.new_context(viewport={"width": 400, "height": 800})
        other.set_default_timeout(PATIENCE)
        ben = other.new_page()
        ben.goto(server.base)
        ben.get_by_label("Name").fill("ben")
        ben.get_by_label("Password").fill("not his word")
        ben.get_by_role("button", name="Log in").last.click()
        assert "do not go together" in ben.get_by_role("alert").inner_text()
        ben.get_by_label("Name").fill("ben")
        ben.get_by_label("Password").fill(WORD)
        ben.get_by_role("button", name="Log in").last.click()
        ben.wait_for_url("**/releases")
        assert ben.get_by_role("navigation").inner_text().split() == ["Releases"]
        assert ben.goto(f"{server.base}/tables/people").status == 403
        assert "for custodians" in ben.locator("main").inner_text()
        picture(ben, "23-analyst")
        assert ben.goto(f"{server.base}/releases/people").status == 200
        ben.get_by_label("Condition").fill("age >= 5")  # a small release may propose none
        ben.get_by_role("button", name="Ask").click()
        ben.get_by_text(re.compile("certified with 95 % confidence")).wait_for()
        other.close()
    finally:
        for file in (desk / "jobs").glob("*/pid.json"):  # where the test failed before it cancelled
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(file.read_text()), signal.SIGTERM)
        server.stop()
        server.close()


@pytest.mark.slow
def test_every_page_on_a_desk_in_the_dark(browser, tmp_path, bundle):
    server = Server(prepared(tmp_path, bundle)).start()
    context = browser.new_context()
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    try:
        page.goto(server.url)
        more = ("tables/new", "tables/people", "tables/people/schema", "releases/people?q=age>5",
                "tables/people/plan?method=gaussian&variations=")  # fmt: skip
        for number, path in enumerate((*PLACES, *more), 30):
            page.goto(f"{server.base}/{path}")
            name = re.sub(r"[^a-z]+", "-", path)
            picture(page, f"{number}-{name}", 1200, "dark")
            assert page.locator("h1").count() == 1
    finally:
        context.close()
        server.stop()
        server.close()


@pytest.mark.parametrize("whole", [False, slow(True)])
def test_two_tables_on_a_phone(phone, tmp_path, whole):
    """As far as the budget; `whole`: to the rows and the report, and as wide as a desk."""
    made = homes.households(400, 3)
    for name, table in (("households", made.households), ("persons", made.persons)):
        (tmp_path / f"{name}.csv").write_bytes(csv_bytes(table))
    server = Server(tmp_path / "desk").start()
    page = phone
    try:
        page.goto(server.url)
        page.goto(f"{server.base}/tables/new")
        page.get_by_text("or two tables instead of one").click()
        page.set_input_files("#file", tmp_path / "persons.csv")
        page.set_input_files("#second", tmp_path / "households.csv")
        picture(page, "20-two-files")
        page.get_by_role("button", name="Upload").click()
        page.wait_for_url("**/tables/households/schema*")
        picture(page, "21-two-tables-schema")
        if whole:
            picture(page, "21-two-tables-schema", 1280)
        page.get_by_text("Replace it by what is public").first.click()
        page.get_by_label("What is different").first.fill("siblings = none")
        page.get_by_role("button", name="Use these facts").first.click()
        page.get_by_text("State everything at once").click()
        page.get_by_role("button", name="I have checked everything").click()
        page.goto(f"{server.base}/tables/households")
        page.fill("#epsilon", "3")
        page.get_by_label("Fix this budget for good").check()
        page.get_by_role("button", name="Declare this budget").click()
        page.get_by_text("left of ε = 3").wait_for()
        if not whole:
            return
        page.goto(f"{server.base}/tables/households/plan")
        page.wait_for_selector("[data-epsilon]")
        picture(page, "22-two-tables-plan")
        picture(page, "22-two-tables-plan", 1280, "dark")
        page.get_by_text("Title and owner of its report").click()
        page.fill("#name", "homes")
        page.get_by_label("Spend this ε").check()
        page.get_by_role("button", name="Start the release").click()
        page.get_by_role("link", name="Open the release").click()
        page.fill("#s", "mean(persons.age) by households.tenure")
        page.get_by_role("button", name="Estimate").click()
        page.get_by_text("households.tenure = owned").wait_for()
        picture(page, "23-two-tables-release")
        picture(page, "23-two-tables-release", 1280)
        with page.expect_download() as got:
            page.get_by_role("link", name="Both tables as CSV").click()
        assert zipfile.ZipFile(got.value.path()).namelist() == [
            "homes/households.csv", "homes/persons.csv"
        ]  # fmt: skip
        page.goto(f"{server.base}/releases/homes/report")
        picture(page, "24-two-tables-report")
    finally:
        server.close()
