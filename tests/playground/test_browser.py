"""The page in a real browser: drawing, turning, keyboard, phone, light and dark."""

import io
import shutil

import numpy as np
import pytest
from PIL import Image

playwright = pytest.importorskip("playwright.sync_api", reason="install playwright: pip install -e '.[browser]'")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no browser found; install Chromium: apt install chromium"),
]
LIMIT = 60_000  # milliseconds; only a page that hangs takes as long


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as tool:
        opened = tool.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])  # root has no sandbox
        yield opened
        opened.close()


@pytest.fixture
def visit(browser, server):
    """A function that opens the page; at the end, nothing may have been asked of others, and no script failed."""
    asked, complaints, contexts = [], [], []

    def open_page(**settings):
        contexts.append(browser.new_context(**settings))
        page = contexts[-1].new_page()
        page.set_default_timeout(LIMIT)
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(server.address)
        page.wait_for_selector("body[data-answered]")
        return page

    yield open_page
    for context in contexts:
        context.close()
    complaints = [text for text in complaints if "400 (Bad Request)" not in text]  # the server refused a picture
    assert complaints == [] and all(url.startswith((server.address, "data:")) for url in asked)


def settled(page):
    """Wait until the page shows the answer to what was asked last."""
    before = page.get_attribute("body", "data-answered")
    page.locator("#angle").dispatch_event("input")
    page.wait_for_selector(f"body:not([data-answered='{before}'])")
    page.wait_for_timeout(150)


def becomes(page, holds):
    """Wait until something holds, on a busy machine for a while."""
    for _ in range(LIMIT // 100):
        if holds():
            return True
        page.wait_for_timeout(100)
    return False


def pixels(element):
    return np.asarray(Image.open(io.BytesIO(element.screenshot())).convert("RGB")).astype(int)


def test_a_digit_that_is_drawn_and_turned_keeps_its_label_and_features(visit):
    page = visit()
    page.click("#clear")
    box = page.locator("#pad").bounding_box()
    for step, fraction in enumerate((0.2, 0.35, 0.5, 0.65, 0.8)):  # a vertical stroke: a 1
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + fraction * box["height"])
        if step == 0:
            page.mouse.down()
    page.mouse.up()
    settled(page)
    assert page.inner_text("#label") == "1"
    upright, bars = pixels(page.locator("#moved")), pixels(page.locator("#bars"))
    page.locator("#angle").fill("90")
    settled(page)
    assert page.inner_text("#label") == "1" and page.inner_text("output[for=angle]") == "90°"
    assert np.abs(pixels(page.locator("#moved")) - upright).max() > 200, "the picture has turned"
    assert np.abs(pixels(page.locator("#bars")) - bars).mean() < 1, "the features stand still"
    assert float(page.inner_text("#gap").split()[0]) < 0.01 < float(page.inner_text("#beside-gap").split()[0])


def test_changes_are_shown_with_their_gap_and_taken_back(visit):
    page = visit(color_scheme="dark")
    assert "no pooling" in page.inner_text("#fixed") and page.locator("#boundary").is_disabled()
    page.select_option("#model", "mnist-012-achiral")
    assert page.inner_text("#fixed") == "" and page.locator("#boundary").is_enabled()
    page.locator("#angle").fill("40")
    page.locator("#smoothing").fill("0")
    page.locator("#alphas input").first.focus()
    spectrum = pixels(page.locator("#spectrum"))
    page.keyboard.press("ArrowRight")
    page.keyboard.press("PageUp")
    settled(page)
    trained, changed = (float(page.inner_text(f"#gap-{name}").split()[0]) for name in ("trained", "changed"))
    assert changed > trained and np.abs(pixels(page.locator("#spectrum")) - spectrum).max() > 50
    assert page.locator("#pools input").count() == 2 and page.locator("#layers canvas").count() > 8
    for picture in (".layer", "figure", ".answer"):  # each has a link to its equation
        assert page.locator(picture).count() == page.locator(f"{picture}:has(a[href^='equations.html#'])").count() > 1
    page.click("#reset")
    settled(page)
    assert page.inner_text("#gap-changed") == page.inner_text("#gap-trained")
    assert pixels(page.locator("body"))[0, 0].max() < 60, "it is dark"


def test_the_keyboard_alone_draws_and_spins_on_a_phone(visit):
    page = visit(viewport={"width": 320, "height": 700})
    assert page.locator("html").evaluate("element => element.scrollWidth") <= 320
    assert max(page.locator("section").evaluate_all("all => all.map(one => one.scrollWidth - one.clientWidth)")) == 0
    assert page.get_by_role("slider", name="Turn").count() == page.get_by_role("slider", name="cross").count() == 1
    page.locator("#pad").focus()
    page.keyboard.press("Delete")
    page.keyboard.press("Space")
    for _ in range(8):
        page.keyboard.press("ArrowUp")
    settled(page)
    assert (pixels(page.locator("#moved")) > 200).any()
    for _ in range(40):  # to the check box by tabulator only
        page.keyboard.press("Tab")
        if page.locator("#spin:focus").count():
            break
    page.keyboard.press("Space")
    page.wait_for_selector("body[data-answered]")
    angle = page.input_value("#angle")
    page.wait_for_timeout(700)
    assert page.input_value("#angle") != angle
    page.keyboard.press("Space")


def test_a_picture_is_opened_and_what_is_none_is_refused(visit, tmp_path):
    page = visit()
    zero = np.full((80, 80), 255, np.uint8)
    rows, columns = np.mgrid[-40:40, -40:40]
    zero[np.abs(np.hypot(rows, columns) - 24) < 5] = 0
    Image.fromarray(zero).save(tmp_path / "zero.png")
    page.locator("#file").set_input_files(tmp_path / "zero.png")
    assert becomes(page, lambda: page.inner_text("#label") == "0")
    dark = pixels(page.locator("#moved")).mean()
    page.locator("#invert").uncheck()  # the same picture again, the other way round
    assert becomes(page, lambda: pixels(page.locator("#moved")).mean() > dark + 50)
    page.locator("#pad").focus()
    page.keyboard.press("Delete")
    page.locator("#invert").check()  # the picture is no longer there, so it does not come back
    settled(page)
    assert pixels(page.locator("#moved"))[40:100, 40:100].max() == 0
    (tmp_path / "text.png").write_text("no picture")
    page.locator("#file").set_input_files(tmp_path / "text.png")
    page.wait_for_selector("#message:not(:empty)")
    assert "not a picture that can be read" in page.inner_text("#message")
