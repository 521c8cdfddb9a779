"""The report in a real browser: every section renders, sorting and hovering work, nothing is loaded or logged.

Needs Playwright and a Chromium: `pip install 'multikernel[browser]'`, and Debian's package chromium or the environment
variable CHROMIUM with the path of another one.
"""

from __future__ import annotations

import os
import shutil

import numpy as np
import pytest

from multikernel import MKLClassifierCV
from multikernel.inspection import report
from multikernel.kernels import RBF, Linear

playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on the path")

NAME = "<script>document.title = 'broken'</script>"
SECTIONS = [
    "In short", "Warnings", "Views and kernels", "Scores on new samples", "Against simpler models", "Certificate",
    "How to make it again",
]  # fmt: skip


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(140, 6))
    y = np.digitize(X[:, 0] + X[:, 1] ** 2 + 0.4 * rng.normal(size=140), (-0.2, 0.5, 1.2, 2.0))
    X = np.column_stack([X, np.arange(140)])
    views = [(NAME, [RBF(), RBF(factor=3.0)], [0, 1]), ("b", RBF(), [2, 3]), ("c", Linear(), [4, 5, 6])]
    model = MKLClassifierCV(views, Cs=[1.0, 10.0], norms=[1.0], cv=3).fit(X[:100], y[:100])
    path = tmp_path_factory.mktemp("browser") / "report.html"
    report(model, X[100:], y[100:], path, X_train=X[:100], y_train=y[:100], n_bootstraps=4)
    return path


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as engine:
        browser = engine.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def opened(browser, path):
    """Open the page; at the end nothing may have been logged, and nothing loaded but the page itself."""
    contexts = []

    def open_page(width=1000, **options):
        context = browser.new_context(viewport={"width": width, "height": 800}, **options)
        page = context.new_page()
        logged, loaded = [], []
        page.on("console", lambda message: logged.append(message.text))
        page.on("pageerror", lambda error: logged.append(str(error)))
        page.on("request", lambda request: loaded.append(request.url))
        contexts.append((context, logged, loaded))
        page.goto(path.as_uri())
        return page

    yield open_page
    for context, logged, loaded in contexts:
        assert logged == [] and [url for url in loaded if not url.startswith("data:")] == [path.as_uri()]
        context.close()


def test_every_section_renders(opened):
    page = opened()
    assert page.title() == "What MKLClassifierCV learned"
    assert [each.inner_text() for each in page.locator("h2").all()] == SECTIONS
    for section in page.locator("main section").all():
        box = section.bounding_box()
        assert box["width"] > 300 and box["height"] > 60
    assert (
        page.locator("figure svg").count() == 4
        and page.locator("table caption").count() == page.locator("table").count()
    )
    page.get_by_role("link", name="Certificate").click()
    assert page.url.endswith("#certificate")
    assert NAME in page.locator("#views tbody th").all_inner_texts()


def test_sorting_by_mouse_and_keyboard(opened):
    page = opened()
    table = page.get_by_role("region", name="Drop in accuracy without each view")
    head = table.locator("thead th", has_text="weight")

    def cells():
        return [float(each.get_attribute("value")) for each in table.locator("tbody tr td:nth-child(6) data").all()]

    assert head.get_attribute("aria-sort") == "none"
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "descending" and cells() == sorted(cells(), reverse=True)
    head.get_by_role("button").press("Enter")
    assert head.get_attribute("aria-sort") == "ascending" and cells() == sorted(cells())
    name = table.locator("thead th", has_text="view")
    name.get_by_role("button").press("Space")
    assert head.get_attribute("aria-sort") == "none" and name.get_attribute("aria-sort") == "descending"
    names = table.locator("tbody th").all_inner_texts()
    assert names[:2] == ["c", "b"]


def test_hovering_and_focus_explain(opened):
    page = opened()
    tip = page.locator("#tip")
    assert tip.is_hidden()
    page.locator("#scores [data-tip]", has_text="balanced accuracy").hover()
    assert tip.is_visible() and "Mean over the classes" in tip.inner_text()
    page.keyboard.press("Escape")
    assert tip.is_hidden()
    cell = page.locator("table.matrix td").first
    cell.hover()
    assert "were taken for" in tip.inner_text() and cell.get_attribute("aria-describedby") == "tip"
    page.locator("h1").hover()
    assert tip.is_hidden() and cell.get_attribute("aria-describedby") is None
    row = page.locator("svg [data-tip]").first
    row.hover()
    assert "drop" in tip.inner_text()
    page.locator("#views thead button", has_text="drop").focus()
    assert "left out" in tip.inner_text()


@pytest.mark.parametrize("width", [320, 360, 768])
def test_no_width_scrolls_sideways(opened, width):
    page = opened(width)
    page.locator("details").evaluate_all("all => all.forEach(each => { each.open = true })")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    # letters of pictures can be read: at least 8 pixels
    sizes = page.locator("#views figure svg text").evaluate_all(
        "all => all.map(each => each.getBoundingClientRect().height)"
    )
    assert min(size for size in sizes if size) >= 8


def test_light_dark_and_print(opened):
    colours = {}
    for scheme in ("light", "dark"):
        page = opened(color_scheme=scheme)
        read = "window.getComputedStyle(document.querySelector({!r})).{}"
        colours[scheme] = [
            page.evaluate(read.format("body", "backgroundColor")),
            page.evaluate(read.format("svg text", "fill")),
        ]
    assert colours["light"][0] == "rgb(255, 255, 255)" and colours["dark"][0] != colours["light"][0]
    assert colours["light"][1] != colours["dark"][1]
    page = opened(color_scheme="dark")
    page.emulate_media(media="print")
    assert page.locator("nav").is_hidden()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


def test_the_page_can_be_read_without_the_script(browser, path):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(path.as_uri())
    assert page.locator("main section").count() == len(SECTIONS) and page.locator("table").first.is_visible()
    context.close()


def test_everything_is_reached_by_the_keyboard(opened):
    page = opened()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    seen = set()
    for _ in range(80):
        page.keyboard.press("Tab")
        seen.add(page.evaluate("document.activeElement.tagName"))
    assert {"A", "BUTTON", "DIV", "SUMMARY", "SPAN"} <= seen
    unnamed = page.evaluate("""[...document.querySelectorAll('svg[role=img], [role=region], button, a')]
        .filter(each => !(each.getAttribute('aria-label') || each.textContent.trim())).length""")
    assert unnamed == 0
