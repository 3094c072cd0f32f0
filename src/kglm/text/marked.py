"""Marked text: the intermediate format between the HTML and wikitext readers and plain text with links.

It is one string of paragraphs, separated by blank lines. Noncharacters (U+FDD0 … U+FDEF, which Unicode reserves for
internal use) encode the markup of the page:

    LINK target SHOWN text CLOSE    a link to a page
    STRONG text WEAK                bold, in the lead only: the first bold run names the subject of the article
    GAP                             removed content; the punctuation around it is cleaned up
    FORMULA                         any formula

`read_marks` converts it to plain text with link spans.
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

# The rest of "(pronounced /…/; born 1950)" and the like after the pronunciation is removed.
_LEAD_IN = re.compile(r"\b(?:pronounced|pronunciation|listen|IPA)[ ,:]*\Z", re.IGNORECASE)
_AFTER_OPENING = re.compile(r"(?:[ ,;:]+|(?:or|and)(?=[ ,;:)]|\Z))*")
_TO_THE_LEFT = ("", *" .,;:!?)]")
_DEEPEST_BRACKETS = 8
_NAMES_TRIED = 10


@dataclass(slots=True)
class Passage:
    """Plain text with links (start, end, target) by character offset, in order and without overlaps."""

    text: str
    spans: list[tuple[int, int, str]] = field(default_factory=list)


def without_marks(text: str) -> str:
    """Remove noncharacters from input text, so that marks can be added."""
    return _MARKS.sub("", text.replace("\r\n", "\n"))


def masked(text: str) -> str:
    """Replace noncharacters in input text by blanks; all offsets stay."""
    return _MARKS.sub(" ", text)


def linked(target: str, text: str) -> str:
    """Encode a link as marked text."""
    return f"{LINK}{target}{SHOWN}{text}{CLOSE}"


def read_marks(marked: str, title: str) -> Passage:
    """Convert marked text to plain text with links; paragraphs without words are dropped.

    The first bold words become a link to `title`.
    """
    passage, parts, length = Passage(""), list[str](), 0
    subject = normalise_title(title)
    for paragraph in _PARAGRAPHS.split(marked):
        text, spans, strong = _unmarked(_without_gaps(" ".join(paragraph.split())))
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
    """Plain text, links and bold runs of a paragraph. Unmatched marks are dropped."""
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
    """Each mark with the text after it; the text before the first mark comes with an empty mark."""
    start, mark = 0, ""
    for match in _MARKS.finditer(paragraph):
        yield mark, paragraph[start : match.start()]
        start, mark = match.end(), match[0]
    yield mark, paragraph[start:]


def _subject(text: str, spans: list[tuple[int, int, str]], strong: list[tuple[int, int]]) -> tuple[int, int] | None:
    """Span of the first bold run that overlaps no link, without quotation marks around it."""
    for start, end in strong[:_NAMES_TRIED]:
        while start < end and text[start] in " \"'“”‘’«»":
            start += 1
        while start < end and text[end - 1] in " \"'“”‘’«»,:;":
            end -= 1
        if start < end and not any(a < end and start < b for a, b, _ in spans):
            return start, end
    return None


# --- removed content ------------------------------------------------------------------------------------------


def _without_gaps(paragraph: str) -> str:
    """Remove the gaps of a paragraph and the punctuation that belonged to the removed content.

    "Ann ( ; born 1961)" with a gap after the bracket becomes "Ann (born 1961)", and "Ann (), a" becomes "Ann, a".
    """
    if GAP not in paragraph:
        return paragraph
    done: list[str] = []
    start, blank = 0, None
    for match in [*_GAPS.finditer(paragraph), None]:
        piece = paragraph[start : match.start()] if match else paragraph[start:]
        if blank is not None:
            _append_after_gap(done, piece, blank)
        elif piece:
            done.append(piece)
        if match:
            start, blank = match.end(), " " in match[0]
    return "".join(done)


def _append_after_gap(done: list[str], piece: str, blank: bool) -> None:
    """Append the text after a gap to the output `done`; `blank` tells whether the gap had a blank beside it."""
    at = 0
    if piece[:1] in (",", ";", ")", ""):
        _strip_lead_in(done)
    for _ in range(_DEEPEST_BRACKETS):
        if done and done[-1][-1] in "([":
            match = _AFTER_OPENING.match(piece, at)
            at = match.end() if match else at
        if not done or piece[at : at + 1] not in (")", "]"):
            break
        blank = False
        _strip(done, " ,;:")
        if not done or done[-1][-1] not in "([":
            break
        done[-1] = done[-1][:-1]  # the brackets are empty
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
    """Strip characters from the end of the output, and drop pieces that become empty."""
    while done:
        done[-1] = done[-1].rstrip(characters)
        if done[-1]:
            return
        done.pop()
