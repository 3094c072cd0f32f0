"""Marked text: the form in which readers of HTML and wikitext hand over what they found.

It is one string: paragraphs with a blank line between them, in which characters that no text holds (Unicode
reserves U+FDD0 … U+FDEF for the inside of programs) say what the page said by its markup:

    LINK target SHOWN text CLOSE    a link to a page
    STRONG text WEAK                bold, in the lead only: the first one is the name of the article's subject
    GAP                             something was left out here; the text around it is mended
    FORMULA                         a formula, whatever it was

`read_marks` turns it into plain text with the spans of its links.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from kglm.kg.ids import normalise_title

GAP, LINK, SHOWN, CLOSE, STRONG, WEAK, FORMULA = "\ufdd0\ufdd1\ufdd2\ufdd3\ufdd4\ufdd5\ufdd6"
BREAK = "\n\n"

_MARKS = re.compile("[\ufdd0-\ufdef]")
_PARAGRAPHS = re.compile(r"\n\s*\n")
_GAPS = re.compile(f" ?{GAP}[ {GAP}]*")
_WORD = re.compile(rf"[^\W_]|{FORMULA}")

# What is left of "(pronounced /…/; born 1950)" and the like when the sounds are gone.
_LEAD_IN = re.compile(r"\b(?:pronounced|pronunciation|listen|IPA)[ ,:]*\Z", re.IGNORECASE)
_AFTER_OPENING = re.compile(r"(?:[ ,;:]+|(?:or|and)(?=[ ,;:)]|\Z))*")
_TO_THE_LEFT = ("", *" .,;:!?)]")
_DEEPEST_MENDING = 8
_NAMES_TRIED = 10


@dataclass(slots=True)
class Passage:
    """Plain text, and for each link (start, end, target) in characters, in order and without overlaps."""

    text: str
    spans: list[tuple[int, int, str]] = field(default_factory=list)


def without_marks(text: str) -> str:
    """Text from outside, safe to be marked."""
    return _MARKS.sub("", text.replace("\r\n", "\n"))


def masked(text: str) -> str:
    """Text from outside without characters that could be taken for marks; all others keep their place."""
    return _MARKS.sub(" ", text)


def linked(target: str, text: str) -> str:
    """A link, in marked text."""
    return f"{LINK}{target}{SHOWN}{text}{CLOSE}"


def read_marks(marked: str, title: str) -> Passage:
    """The paragraphs of a marked text that hold a word, mended; the first bold words link to `title`."""
    passage, parts, length = Passage(""), list[str](), 0
    subject = normalise_title(title)
    for paragraph in _PARAGRAPHS.split(marked):
        text, spans, strong = _unmarked(_mended(" ".join(paragraph.split())))
        if not _WORD.search(text):
            continue
        if subject and strong and (name := _subject(text, spans, strong)):
            spans = sorted([*spans, (*name, subject)])
            subject = ""
        if parts:
            parts.append(BREAK)
            length += len(BREAK)
        passage.spans += [(start + length, end + length, target) for start, end, target in spans]
        parts.append(text)
        length += len(text)
    passage.text = "".join(parts)
    return passage


def _unmarked(paragraph: str) -> tuple[str, list[tuple[int, int, str]], list[tuple[int, int]]]:
    """The bare text of a paragraph, its links, its bold runs. Marks that do not match are dropped."""
    parts: list[str] = []
    spans: list[tuple[int, int, str]] = []
    strong: list[tuple[int, int]] = []
    length, target, opened, bold = 0, "", -1, -1
    for mark, text in _pieces(paragraph):
        if mark == LINK:
            target, opened = text, -1
            continue
        if mark == SHOWN:
            opened = length
        elif mark == CLOSE:
            if 0 <= opened < length and target:
                spans.append((opened, length, target))
            opened = -1
        elif mark == STRONG and bold < 0:
            bold = length
        elif mark == WEAK and bold >= 0:
            strong.append((bold, length))
            bold = -1
        elif mark == FORMULA:
            text = FORMULA + text
        parts.append(text)
        length += len(text)
    if bold >= 0:
        strong.append((bold, length))
    return "".join(parts), spans, strong


def _pieces(paragraph: str) -> Iterator[tuple[str, str]]:
    """Each mark with the text after it; first the text before all marks, with an empty mark."""
    start, mark = 0, ""
    for match in _MARKS.finditer(paragraph):
        yield mark, paragraph[start : match.start()]
        start, mark = match.end(), match[0]
    yield mark, paragraph[start:]


def _subject(text: str, spans: list[tuple[int, int, str]], strong: list[tuple[int, int]]) -> tuple[int, int] | None:
    """The first bold run that no link touches, without the quotation marks around it."""
    for start, end in strong[:_NAMES_TRIED]:
        while start < end and text[start] in " \"'“”‘’«»":
            start += 1
        while start < end and text[end - 1] in " \"'“”‘’«»,:;":
            end -= 1
        if start < end and not any(a < end and start < b for a, b, _ in spans):
            return start, end
    return None


# --- mending ------------------------------------------------------------------------------------------


def _mended(paragraph: str) -> str:
    """A paragraph without gaps, and without the punctuation that only served what was there.

    "Ann ( ; born 1961)" with a gap after the bracket becomes "Ann (born 1961)", and "Ann (), a" becomes "Ann, a".
    """
    if GAP not in paragraph:
        return paragraph
    done: list[str] = []
    start, blank = 0, None
    for match in [*_GAPS.finditer(paragraph), None]:
        piece = paragraph[start : match.start()] if match else paragraph[start:]
        if blank is not None:
            _mend(done, piece, blank)
        elif piece:
            done.append(piece)
        if match:
            start, blank = match.end(), " " in match[0]
    return "".join(done)


def _mend(done: list[str], piece: str, blank: bool) -> None:
    """Add the text after a gap to what is done; `blank` says whether there was a blank beside the gap."""
    at = 0
    if piece[:1] in (",", ";", ")", ""):
        _strip_lead_in(done)
    for _ in range(_DEEPEST_MENDING):
        if done and done[-1][-1] in "([":
            match = _AFTER_OPENING.match(piece, at)
            at = match.end() if match else at
        if not done or piece[at : at + 1] not in (")", "]"):
            break
        blank = False
        _strip(done, " ,;:")
        if not done or done[-1][-1] not in "([":
            break
        done[-1] = done[-1][:-1]  # nothing is left between the brackets
        at, blank = at + 1, done[-1].endswith(" ")
        _strip(done, " ")
        if piece[at : at + 1] == " ":
            at, blank = at + 1, True
    if not done:
        rest = piece[at:].lstrip(" ,;:)")
    else:
        last, next = done[-1][-1], piece[at : at + 1]
        rest = piece[at + 1 :] if last in ",;:" and next in (",", ";", ":") else piece[at:]
        if blank and rest[:1] not in _TO_THE_LEFT and last not in "([":
            done.append(" ")
    if rest:
        done.append(rest)


def _strip_lead_in(done: list[str]) -> None:
    if done and (match := _LEAD_IN.search(done[-1], max(0, len(done[-1]) - 40))):
        done[-1] = done[-1][: match.start()]
        _strip(done, " ")


def _strip(done: list[str], characters: str) -> None:
    """Take characters off the end of the text, and leave no empty piece there."""
    while done:
        done[-1] = done[-1].rstrip(characters)
        if done[-1]:
            return
        done.pop()
