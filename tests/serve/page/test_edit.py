"""Facts that are changed, added, removed, and brought back."""

from __future__ import annotations

from kglm.answer.model import FactAwareLM
from support.browsing import BORN, Open, answers, complete, edit, words
from support.serving import serving


def test_an_edit_changes_the_words_and_is_undone(visit: Open) -> None:
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


def test_an_entity_is_found_by_its_name(visit: Open) -> None:
    page = visit(complete("Barack Obama 's place of birth is"))
    words(page)
    page.get_by_role("button", name="Barack Obama —place of birth→ Honolulu").first.click()
    page.get_by_label("New value").press_sequentially("chi")
    page.get_by_role("option", name="Chicago").wait_for()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.get_by_text("add to the present values").click()
    page.get_by_role("button", name="Change the fact").click()
    page.wait_for_selector(".split:not([aria-busy]) .compared")
    assert "Chicago" in answers(page)
    listed = page.locator(".edit-list li").inner_text()
    assert " ".join(listed.split()) == "added Barack Obama —place of birth→ Chicago"


def test_a_fact_is_removed(visit: Open) -> None:
    page = visit(complete())
    words(page)
    page.get_by_role("button", name=BORN).first.click()
    page.get_by_role("button", name="Remove it").click()
    page.wait_for_selector(".split:not([aria-busy]) .compared")
    assert page.get_by_role("button", name=BORN).count() == 0
    assert "→ <" in words(page)["August"]


def test_an_invalid_date_is_explained(visit: Open) -> None:
    page = visit(complete(), allowed="status of 422")
    words(page)
    page.get_by_role("button", name=BORN).first.click()
    page.get_by_label("New value").fill("an unheard-of day")
    page.get_by_role("button", name="Change the fact").click()
    message = page.locator("dialog .trouble").inner_text()
    assert "an unheard-of day" in message and "write it like 21 March 2013" in message and "kglm" not in message


def test_edits_that_are_off_say_how_they_are_turned_on(visit: Open, model: FactAwareLM) -> None:
    with serving(model) as strict:
        page = visit(complete(), at=strict)
        words(page)
        page.get_by_role("button", name=BORN).first.click()
        assert "--allow-edit" in page.locator("dialog").inner_text()
        assert page.get_by_role("button", name="Change the fact").count() == 0


def test_an_expired_session(visit: Open) -> None:
    page = visit(complete(), allowed="status of 404")
    words(page)
    page.evaluate("sessionStorage.setItem('kglm-session', 'A'.repeat(43))")
    page.reload()
    before = words(page)
    edit(page, BORN, "21 March 2013")
    assert "2013" in words(page) and "2013" not in before


def test_all_edits_are_undone_at_once(visit: Open) -> None:
    page = visit(complete())
    before = words(page)
    edit(page, BORN, "21 March 2013")
    assert page.get_by_role("button", name="Undo all").count() == 0
    edit(page, "Barack Obama —date of birth→ March 21, 2013", "5 May 1955")
    page.locator(".edit-list li").nth(1).wait_for()
    page.get_by_role("button", name="Undo all").click()
    page.wait_for_selector(".split:not([aria-busy]) .bars:not(.compared)")
    assert words(page) == before
    assert page.locator(".edits").is_hidden()
