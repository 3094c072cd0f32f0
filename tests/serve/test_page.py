"""The page in a real browser on a real server: what a person does with mouse, keyboard or thumb, and what they see."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode

import pytest

from kglm.infer.live import Live
from kglm.kg.ids import NEW, REFLEXIVE
from kglm.text.document import END, START, Document, Mention, read_documents, write_documents
from serving import PROMPT, SCRIPT, Client, serving

api = pytest.importorskip("playwright.sync_api", reason="the browser tests need playwright: pip install -e .[dev]")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine: apt-get install chromium")

BORN = "Barack Obama —date of birth→ August 4, 1961"
TOKEN = "a-token-of-24-characters"
DESK, PHONE = {"width": 1280, "height": 900}, {"width": 360, "height": 740}
ARABIC = "باراك أوباما"
LOOK = (Path(__file__).parent / "look.js").read_text()
Open = Callable[..., Any]


def obama() -> Document:
    """Every source once, and a name that is written from right to left."""
    first = ["Barack", "Obama", "was", "born", "in", "Honolulu", "."]
    second = ["He", "married", "Michelle", "Obama", ",", *ARABIC.split(), "."]
    mentions = [
        Mention(1, 3, "Q76", "WIKI", (NEW,), ("Q76",)),
        Mention(6, 7, "Q18094", "KG", ("P19",), ("Q76",)),
        Mention(9, 10, "Q76", "COREF", (REFLEXIVE,), ("Q76",)),
        Mention(11, 13, "Q13133", "NEL", ("P26",), ("Q76",)),
    ]
    return Document("Barack Obama", [START, *first, END, *second, END], mentions)


def script() -> Document:
    return Document(SCRIPT, [START, SCRIPT, "meets", "Obama", END], [Mention(1, 2, "Q666", "WIKI", (NEW,), ("Q666",))])


@pytest.fixture(scope="module")
def documents(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "documents.jsonl"
    said = list(read_documents(run.parent / "said.jsonl"))
    write_documents(path, [obama(), script(), *said[:28]])
    return path


@pytest.fixture(scope="module")
def server(live: Live, documents: Path) -> Iterator[Client]:
    with serving(live, documents, allow_edit=True) as client:
        yield client


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def desk(browser: Any) -> Any:
    """Where most pages are opened: a visitor of its own for each would take a second more. What a page keeps (token,
    session) belongs to its tab."""
    return browser.new_context(viewport=DESK)


@pytest.fixture
def visit(browser: Any, desk: Any, server: Client) -> Iterator[Open]:
    """A page at an address. What the browser complains about, but for what is `allowed`, fails the test."""
    opened: list[Any] = []
    complaints: list[str] = []

    def visit(address: str = "", *, at: Client = server, allowed: str = "(?!)", **visitor: Any) -> Any:
        page = (browser.new_context(**visitor) if visitor else desk).new_page()
        opened.append(page)
        page.set_default_timeout(15_000)
        page.on("console", lambda m: m.type in ("error", "warning") and keep(m.text, allowed))
        page.on("pageerror", lambda error: keep(str(error), allowed))
        page.on("dialog", lambda dialog: (keep(f"a dialog: {dialog.message}", allowed), dialog.dismiss()))
        page.goto(f"http://127.0.0.1:{at.port}/{address}")
        return page

    def keep(text: str, allowed: str) -> None:
        if not re.search(allowed, text):
            complaints.append(text)

    yield visit
    for page in opened:
        page.close() if page.context is desk else page.context.close()
    assert complaints == []


def complete(text: str = PROMPT, **more: str) -> str:
    return f"#/complete?{urlencode({'text': text, **more})}"


def words(page: Any) -> dict[str, str]:
    """The bars: words and what stands beside them."""
    page.wait_for_selector(".split:not([aria-busy]) .bar")
    rows = page.locator("button.bar").all()
    return {row.locator(".word").inner_text(): row.locator(".p").inner_text() for row in rows}


def query(page: Any) -> dict[str, list[str]]:
    return parse_qs(page.url.partition("?")[2])


def edit(page: Any, fact: str, value: str) -> None:
    page.get_by_role("button", name=fact).first.click()
    page.get_by_label("New value").fill(value)
    page.get_by_role("button", name="Change the fact").click()
    page.wait_for_selector(".split:not([aria-busy]) .compared")


class TestComplete:
    def test_words_come_while_one_types_with_their_reasons(self, visit: Open) -> None:
        page = visit("#/complete?text=Michelle+Obama")
        page.get_by_label("A text to go on with").fill("Barack Obama was born")
        page.get_by_label("A text to go on with").press_sequentially(" on")
        page.wait_for_url(re.compile(r"born\+on"))
        assert "August" in words(page)
        assert page.locator(".gloss").inner_text().split("\n") == ["Barack Obama", "Q76 100 %"]
        august = page.locator('button.bar[data-word="August"]')
        assert august.get_attribute("aria-expanded") == "false"
        august.click()
        assert page.locator('button.bar[data-word="August"]').get_attribute("aria-expanded") == "true"
        assert page.locator(".why:not([hidden]) .reason").first.inner_text().startswith(f"{BORN}, copied")
        assert page.get_by_text("The rest:").is_visible()

    def test_the_path_of_the_opened_word_is_lit(self, visit: Open) -> None:
        page = visit(complete())
        words(page)
        page.locator('button.bar[data-word="August"]').click()
        assert page.locator("svg .fact.lit").count() == 1
        assert BORN in str(page.locator("svg .fact.lit").get_attribute("aria-label"))
        assert page.locator("svg .parent.lit text").first.text_content() == "Barack Obama"
        assert page.locator("svg .said text").first.text_content() == "August"
        page.locator('button.bar[data-word="of"]').click()
        assert page.locator("svg .fact.lit").count() == 0
        assert page.locator("svg .route.t-none").count() == 1

    def test_an_edit_changes_the_words_and_is_undone(self, visit: Open) -> None:
        page = visit(complete())
        before = words(page)
        assert "2013" not in before
        edit(page, BORN, "21 March 2013")
        after = words(page)
        assert "→" in after["2013"] and "→" in after["August"]
        assert page.locator(".bars .ghost").count() > 5
        listed = page.locator(".edits").inner_text()
        assert "Barack Obama —date of birth→ August 4, 1961 March 21, 2013" in " ".join(listed.split())
        page.reload()
        assert "2013" in words(page)
        page.get_by_role("button", name="Undo the last").click()
        page.wait_for_selector(".split:not([aria-busy]) .bars:not(.compared)")
        assert words(page) == before
        assert page.locator(".edits").is_hidden()

    def test_an_entity_is_found_by_its_name(self, visit: Open) -> None:
        page = visit(complete("Barack Obama 's place of birth is"))
        words(page)
        page.get_by_role("button", name="Barack Obama —place of birth→ Honolulu").first.click()
        page.get_by_label("New value").press_sequentially("chi")
        page.get_by_role("option", name="Chicago").wait_for()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        page.get_by_text("besides what there is").click()
        page.get_by_role("button", name="Change the fact").click()
        page.wait_for_selector(".split:not([aria-busy]) .compared")
        assert "Chicago" in words(page)
        listed = page.locator(".edit-list li").inner_text()
        assert " ".join(listed.split()) == "added Barack Obama —place of birth→ Chicago"

    def test_a_fact_is_removed(self, visit: Open) -> None:
        page = visit(complete())
        words(page)
        page.get_by_role("button", name=BORN).first.click()
        page.get_by_role("button", name="Remove it").click()
        page.wait_for_selector(".split:not([aria-busy]) .compared")
        assert page.get_by_role("button", name=BORN).count() == 0
        assert "→ <" in words(page)["August"]

    def test_what_is_no_date_is_refused_in_words(self, visit: Open) -> None:
        page = visit(complete(), allowed="status of 422")
        words(page)
        page.get_by_role("button", name=BORN).first.click()
        page.get_by_label("New value").fill("nobody ever heard of it")
        page.get_by_role("button", name="Change the fact").click()
        assert "nobody ever heard of it" in page.locator("dialog .trouble").inner_text()

    def test_who_is_meant_is_said_and_stays_said(self, visit: Open) -> None:
        page = visit(complete("Obama is married to"))
        words(page)
        page.locator(".gloss").click()
        page.get_by_label("Someone else").press_sequentially("michelle")
        page.get_by_role("option", name="Michelle Obama").click()
        page.wait_for_selector(".gloss.said")
        assert query(page)["entity"] == ["0:1=Q13133"]
        page.wait_for_selector("svg .parent[aria-label^='Michelle Obama']")
        page.reload()
        page.wait_for_selector("svg .parent[aria-label^='Michelle Obama']")
        assert page.locator(".gloss.said .who").inner_text() == "Michelle Obama ✓"
        page.get_by_label("A text to go on with").press_sequentially(" the")
        page.wait_for_url(re.compile(r"\+the&"))
        assert query(page)["entity"] == ["0:1=Q13133"]
        page.get_by_label("A text to go on with").fill("The Obama is married to")
        page.wait_for_url(re.compile("^(?!.*entity)"))

    def test_a_word_is_added_and_an_example_taken(self, visit: Open, server: Client) -> None:
        page = visit(complete())
        words(page)
        page.locator('button.bar[data-word="August"]').click()
        page.get_by_role("button", name="Add “August” to the text").click()
        page.wait_for_url(re.compile(r"on\+August$"))
        example = server.get("/api/health").json["examples"][0]
        page.get_by_role("group", name="Examples").get_by_text(example).click()
        page.wait_for_url(lambda url: parse_qs(url.partition("?")[2])["text"] == [example])

    def test_the_last_thing_asked_is_what_is_shown(self, visit: Open) -> None:
        page = visit(complete())
        words(page)
        slow: list[Any] = []
        page.route(
            "**/api/complete",
            lambda route: slow.append(route) if "Michelle" in route.request.post_data else route.continue_(),
        )
        area = page.get_by_label("A text to go on with")
        area.fill("Michelle Obama is married to")
        page.wait_for_url(re.compile("Michelle"))
        area.fill("Barack Obama is married to")
        page.wait_for_url(re.compile("Barack"))
        page.wait_for_selector(".split:not([aria-busy])")
        assert len(slow) == 1
        assert page.locator("svg .parent").first.get_attribute("aria-label").startswith("Barack Obama")


class TestGenerate:
    def test_words_stream_with_the_fact_on_focus(self, visit: Open) -> None:
        page = visit("#/generate?text=Barack+Obama&words=40&temperature=0.7&seed=1&beam=0")
        page.wait_for_selector("#generate section:not([aria-busy]) .facts-used")
        assert "40 words" in page.locator("#generate .card").last.inner_text()
        assert page.locator(".given").inner_text() == "Barack Obama"
        text = page.locator("#generate .text").inner_text()
        page.locator("#generate .mention.t-related").first.focus()
        assert re.search(r"—.+→ .+, copied", page.get_by_role("tooltip").inner_text())
        page.keyboard.press("Escape")
        assert page.get_by_role("tooltip").is_hidden()
        page.locator("#generate .mention").first.hover()
        assert page.get_by_role("tooltip").is_visible()
        page.reload()
        page.wait_for_selector("#generate section:not([aria-busy]) .facts-used")
        assert page.locator("#generate .text").inner_text() == text

    def test_it_stops(self, visit: Open) -> None:
        page = visit("#/generate?text=Barack+Obama&words=200&temperature=1&seed=1&beam=0")
        page.wait_for_selector("#generate .mention")
        page.get_by_role("button", name="Stop").click()
        said = page.get_by_text(re.compile(r"Stopped after \d+ words?")).inner_text()
        assert int(said.split()[2]) < 200
        assert page.get_by_role("button", name="Stop").is_hidden()

    def test_settings_are_sent(self, visit: Open) -> None:
        page = visit("#/generate")
        page.get_by_label("Begin with").fill("Michelle Obama")
        page.get_by_label("Words").fill("5")
        page.get_by_label("Beam").fill("2")
        page.get_by_role("button", name="Generate").click()
        page.get_by_text(re.compile(r"^5 words")).wait_for()
        assert query(page) == {
            "text": ["Michelle Obama"],
            "words": ["5"],
            "temperature": ["0.7"],
            "seed": ["0"],
            "beam": ["2"],
        }
        page.get_by_label("Words").fill("500")
        page.get_by_role("button", name="Generate").click()
        assert page.evaluate("document.activeElement.name") == "words"


class TestExplore:
    def test_a_mention_tells_all(self, visit: Open) -> None:
        page = visit("#/explore/1")
        text = page.locator("#explore .text")
        text.wait_for()
        assert (
            text.inner_text().split()
            == f"Barack Obama was born in Honolulu. He married Michelle Obama, {ARABIC}.".split()
        )
        text.get_by_text("Honolulu").click()
        detail = page.locator(".detail")
        assert "Barack Obama —place of birth→ Honolulu" in detail.inner_text()
        assert "KG" in detail.inner_text()
        outward = detail.get_by_role("link", name="Wikidata")
        assert outward.get_attribute("href") == "https://www.wikidata.org/wiki/Q18094"
        assert "noreferrer" in outward.get_attribute("rel")
        detail.get_by_role("button", name="Go to Barack Obama").click()
        assert page.evaluate("document.activeElement.textContent") == "Barack Obama"
        detail.get_by_text("Its facts and names").click()
        assert "Barack Obama" in page.locator("dialog .fact-row").first.inner_text()
        page.keyboard.press("Escape")
        text.get_by_text("Michelle Obama").click()
        detail.get_by_text("What would the model say here?").click()
        page.wait_for_selector("#complete .bar")
        assert query(page)["text"] == ["Barack Obama was born in Honolulu. He married"]

    def test_filters_narrow_the_list_and_stay_in_the_address(self, visit: Open, server: Client) -> None:
        page = visit("#/explore")
        page.get_by_text("30 documents, 1–20").wait_for()
        page.get_by_text("After →").click()
        page.get_by_text("30 documents, 21–30").wait_for()
        page.get_by_label("Entity", exact=True).press_sequentially("honol")
        page.get_by_role("option", name="Honolulu").click()
        total = server.get("/api/documents?entity=Q18094").json["total"]
        assert 1 < total < 30
        page.locator("#e-count", has_text=f"{total} documents").wait_for()
        page.get_by_role("link", name="Next document").click()
        page.wait_for_url(re.compile("explore/[2-9]"))
        second = server.get("/api/documents?entity=Q18094").json["documents"][1]
        page.locator(".doc-title", has_text=second["title"]).wait_for()
        assert query(page) == {"entity": ["Q18094"]}
        assert page.locator(".mention.wanted").count() >= 1
        page.reload()
        page.locator(".doc-title", has_text=second["title"]).wait_for()
        page.get_by_label("Source", exact=True).select_option("WIKI")
        page.get_by_text("No document fits.").wait_for()
        page.go_back()
        page.locator(".doc-title", has_text=second["title"]).wait_for()
        page.get_by_role("button", name="Remove the filter entity Honolulu").click()
        page.get_by_text("30 documents, 1–20").wait_for()
        page.get_by_label("Search", exact=True).fill("married")
        page.locator("mark").first.wait_for()
        page.get_by_label("Relation").press_sequentially("place")
        page.get_by_role("option", name="place of birth").first.click()
        page.wait_for_url(re.compile("relation=P19"))

    def test_sources_are_hidden_and_a_text_of_ones_own_is_annotated(self, visit: Open) -> None:
        page = visit("#/explore/1")
        page.locator("#explore .mention.s-COREF").wait_for()
        shown = page.locator("#explore .mention.s-COREF").evaluate("e => getComputedStyle(e).backgroundColor")
        page.get_by_role("button", name="COREF").click()
        hidden = page.locator("#explore .mention.s-COREF").evaluate("e => getComputedStyle(e).backgroundColor")
        assert shown != hidden == "rgba(0, 0, 0, 0)"
        page.get_by_text("Annotate a text of your own").click()
        page.get_by_label("Text", exact=True).fill("Michelle Obama met Barack Obama.")
        page.get_by_role("button", name="Annotate").click()
        page.locator(".doc-title", has_text="Your text").wait_for()
        assert page.locator("#explore .text").inner_text().strip() == "Michelle Obama met Barack Obama."

    def test_a_server_without_documents_says_so(self, visit: Open, live: Live) -> None:
        with serving(live) as bare:
            page = visit("#/explore", at=bare)
            page.get_by_text("--documents").wait_for()


def test_everything_works_by_keyboard(visit: Open) -> None:
    page = visit(complete())
    words(page)
    press, focused = page.keyboard.press, lambda what: page.evaluate(f"document.activeElement.{what}")

    def tab_to(selector: str) -> None:
        for _ in range(40):
            press("Tab")
            if page.evaluate("s => document.activeElement.matches(s)", selector):
                outline = "e => getComputedStyle(e).outlineStyle + getComputedStyle(e).outlineWidth"
                if not selector.startswith("g"):
                    assert page.locator(":focus").evaluate(outline) != "none0px"
                return
        raise AssertionError(f"Tab never comes to {selector}")

    press("Tab")
    assert focused("textContent") == "Skip to the content"
    press("Enter")
    assert focused("id") == "main"
    tab_to("textarea")
    tab_to("button.bar")
    first = focused("dataset.word")
    press("ArrowDown")
    press("ArrowRight")
    second = focused("dataset.word")
    assert second != first
    assert page.locator(".opened button.bar").get_attribute("data-word") == second
    press("ArrowLeft")
    assert page.locator(".opened").count() == 0
    assert focused("dataset.word") == second
    tab_to("g.fact")
    at = focused("getAttribute('aria-label')")
    press("ArrowDown")
    press("ArrowUp")
    assert focused("getAttribute('aria-label')") == at
    press("Enter")
    assert page.locator("dialog[open]").count() == 1
    page.locator("dialog [role=combobox]:focus").wait_for()
    press("Escape")
    assert page.locator("dialog[open]").count() == 0
    assert focused("getAttribute('aria-label')") == at
    press("Enter")
    page.locator("dialog [role=combobox]:focus").wait_for()
    page.keyboard.type("1 May 1999")
    press("Enter")
    page.wait_for_selector(".compared")
    assert focused("textContent") == "Undo the last"
    press("Enter")
    page.wait_for_selector(".bars:not(.compared)")
    page.goto(page.url.partition("#")[0] + "#/explore/1")
    page.locator("#explore .mention").first.focus()
    press("ArrowRight")
    press("Enter")
    assert "Honolulu" in page.locator(".detail h3").inner_text()


@pytest.mark.parametrize(
    ("size", "scheme"),
    [
        ("phone", "light"),
        ("desktop", "dark"),
        pytest.param("phone", "dark", marks=pytest.mark.slow),
        pytest.param("desktop", "light", marks=pytest.mark.slow),
    ],
)
def test_every_view_fits_and_can_be_read(visit: Open, size: str, scheme: str) -> None:
    """Nothing scrolls sideways at 360 pixels, and all text has the contrast that WCAG AA asks for."""
    narrow = size == "phone"
    page = visit(complete(), color_scheme=scheme, viewport=PHONE if narrow else DESK, has_touch=narrow)
    words(page)
    assert page.locator(".graph-list" if narrow else "svg.graph").count() == 1
    edit(page, BORN, "21 March 2013")
    page.locator(".gloss").click()
    looks = [page.evaluate(LOOK)]
    for address, there in [
        (
            "#/generate?text=Barack+Obama&words=12&temperature=0&seed=0&beam=0",
            "#generate .facts-used, #generate .mention",
        ),
        ("#/explore", ".documents"),
        ("#/explore/1", "#explore .mention"),
    ]:
        page.goto(page.url.partition("#")[0] + address)
        page.wait_for_selector(there)
        if there == "#explore .mention":
            page.locator(there).nth(1).click()
        looks.append(page.evaluate(LOOK))
    for look in looks:
        assert look["width"] <= (PHONE if narrow else DESK)["width"]
        assert look["dark"] == (scheme == "dark")
        assert look["texts"] > 15
        assert look["faint"] == []


def test_the_theme_is_chosen_and_kept(visit: Open) -> None:
    page = visit(complete(), color_scheme="light")
    button = page.get_by_role("button", name=re.compile("^Colours"))
    button.click()
    button.click()
    assert page.evaluate(LOOK)["dark"]
    page.reload()
    assert page.evaluate(LOOK)["dark"]
    assert page.get_by_role("button", name="Colours: dark").is_visible()


def test_what_moves_rests_for_those_who_ask(visit: Open) -> None:
    page = visit(complete(), reduced_motion="reduce")
    words(page)
    assert page.locator(".part").first.evaluate("e => getComputedStyle(e).transitionDuration") in ("", "0s")


class TestHostileText:
    def test_scripts_in_names_and_prompts_are_text(self, visit: Open) -> None:
        attack = f'{SCRIPT} <img src=x onerror="alert(2)"> Evil Twin\'s place of birth is'
        page = visit(complete(attack))
        words(page)
        assert '<img src=x onerror="alert(2)">' in page.locator(".echo").inner_text()
        assert SCRIPT in str(page.locator("svg .parent").first.text_content()) + page.locator(".picture").inner_text()
        page.locator(".gloss").last.click()
        assert SCRIPT in page.locator(".choices").inner_text()
        page.get_by_role("button", name=f"About {SCRIPT}").click()
        page.locator("dialog h2", has_text=SCRIPT).wait_for()
        page.goto(page.url.partition("#")[0] + "#/explore/2")
        page.locator(".doc-title", has_text=SCRIPT).wait_for()
        page.locator("#explore .mention").click()
        assert page.locator(".detail h3").inner_text() == SCRIPT
        page.goto(page.url.partition("#")[0] + f"#/generate?{urlencode({'text': attack, 'words': 8, 'seed': 1})}")
        page.wait_for_selector("#generate section:not([aria-busy]):not([hidden])")
        assert page.evaluate("document.querySelectorAll('main img, main script, [onerror]').length") == 0

    def test_addresses_are_not_trusted(self, visit: Open) -> None:
        page = visit(
            '#/explore/12"><img src=x onerror=alert(1)>?entity="><script>alert(1)</script>&relation=javascript:alert(1)'
        )
        page.get_by_text("No document fits.").wait_for()
        assert page.get_by_text('entity: "><script>alert(1)</script>').is_visible()
        page.goto(page.url.partition("#")[0] + "#/complete?text=Barack+Obama+was&entity=nonsense&entity=0:2=Q76")
        assert "August" in words(page) or words(page)


class TestTrouble:
    def test_edits_that_are_off_say_how_they_are_turned_on(self, visit: Open, live: Live) -> None:
        with serving(live) as strict:
            page = visit(complete(), at=strict)
            words(page)
            page.get_by_role("button", name=BORN).first.click()
            assert "--allow-edit" in page.locator("dialog").inner_text()
            assert page.get_by_role("button", name="Change the fact").count() == 0

    def test_the_token_is_asked_for_until_it_is_right(self, visit: Open, live: Live) -> None:
        with serving(live, token=TOKEN) as strict:
            page = visit(complete(), at=strict, allowed="status of 401")
            page.get_by_label("Token", exact=True).fill("wrong")
            page.get_by_role("button", name="Go on").click()
            page.get_by_text("That was not it.").wait_for()
            page.get_by_label("Token", exact=True).fill(TOKEN)
            page.get_by_role("button", name="Go on").click()
            assert "August" in words(page)
            page.reload()
            assert "August" in words(page)
            assert page.locator("dialog").count() == 0

    def test_a_busy_server_is_asked_again(self, visit: Open) -> None:
        page = visit(allowed="status of 429")
        words(page)
        refused: list[Any] = []

        def refuse(route: Any) -> None:
            refused.append(route)
            body = '{"error": {"code": "busy", "message": "busy"}}'
            route.fulfill(status=429, body=body, headers={"Retry-After": "1"}) if len(
                refused
            ) == 1 else route.continue_()

        page.route("**/api/complete", refuse)
        page.get_by_label("A text to go on with").fill("Michelle Obama is married to")
        page.get_by_text("busy, trying again").wait_for()
        page.wait_for_selector("svg .parent[aria-label^='Michelle Obama']")
        assert len(refused) == 2
        assert page.locator("#banner").is_hidden()

    def test_a_server_that_comes_back_is_noticed(self, visit: Open) -> None:
        page = visit(allowed="ERR_INTERNET_DISCONNECTED", locale="en")
        words(page)
        page.context.set_offline(True)
        page.get_by_label("A text to go on with").fill("Michelle Obama is married to")
        page.get_by_text("Waiting for it to come back").wait_for()
        page.context.set_offline(False)
        page.wait_for_selector("svg .parent[aria-label^='Michelle Obama']")
        assert page.locator("#banner").is_hidden()

    def test_a_forgotten_session_is_no_trouble(self, visit: Open) -> None:
        page = visit(complete(), allowed="status of 404")
        words(page)
        page.evaluate("sessionStorage.setItem('kglm-session', 'A'.repeat(43))")
        page.reload()
        before = words(page)
        edit(page, BORN, "21 March 2013")
        assert "2013" in words(page) and "2013" not in before
