"""Convert wikitext to marked text: prose and links are kept; tables, notes, images, headings and lists are removed.

Several passes over the whole page, each in time linear in its length for any input: a stack of bounded depth matches
brackets, and no part is searched twice. (The common library, mwparserfromhell, takes minutes for 80 kB of opening
braces.) Markup that is not closed loses its brackets and keeps its text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from html import unescape

from kglm.text.marked import BREAK, CLOSE, FORMULA, GAP, LINK, STRONG, WEAK, linked, without_marks
from kglm.text.wiki.sections import is_end_section
from kglm.text.wiki.templates import template_text
from kglm.text.wiki.titles import ENGLISH, Namespaces, listed

DEEPEST = 50
"""Templates and links that are nested deeper than this are removed."""


def read_wikitext(text: str, title: str, *, namespaces: Namespaces = ENGLISH, lists: bool = False) -> str:
    """Prose of a page as marked text. Lists are removed, as in the linked corpus, unless `lists`."""
    text = without_marks(text)
    text = _without_extensions(text)
    text = _without_templates(text, title)
    text = _without_tables(text)
    text = _without_pairs(text, _ELEMENTS if lists else _ELEMENTS_AND_LISTS)
    text = _with_links(text, namespaces)
    text = _without_tags(text)
    return BREAK.join(_paragraphs(text, lists))


# --- comments and extension tags (notes, formulas), which the wiki handles before other markup ------------


def _nowiki(content: str) -> str:
    return re.sub(r"[\[\]{}|<>'=*#:;_~]", lambda match: f"&#{ord(match[0])};", content)


def _dropped(_: str) -> str:
    return GAP


def _formula(_: str) -> str:
    return FORMULA


def _block(content: str) -> str:
    return f"{BREAK}{content}{BREAK}"


_EXTENSIONS: dict[str, Callable[[str], str]] = {
    **dict.fromkeys(
        listed(
            """ref references gallery timeline score graph imagemap templatedata syntaxhighlight source hiero pre style
            script includeonly mapframe maplink inputbox categorytree indicator section templatestyles phonos"""
        ),
        _dropped,
    ),
    **dict.fromkeys(listed("math chem ce"), _formula),
    "nowiki": _nowiki,
    "poem": _block,
}
_NAMES = "|".join(sorted(_EXTENSIONS, key=len, reverse=True))
_EXTENSION = re.compile(rf"<!--|<(/?)({_NAMES})\b([^<>]*)>", re.IGNORECASE)
# The end tag of an element, or the next start tag of its name, which shows that the element is not closed.
_NEXT = {name: re.compile(rf"<(/){name}\s*>|<{name}\b[^<>]*(?<!/)>", re.IGNORECASE) for name in _EXTENSIONS}


def _without_extensions(text: str) -> str:
    done: list[str] = []
    at, unclosed = 0, set[str]()
    while match := _EXTENSION.search(text, at):
        done.append(text[at : match.start()])
        if match[2] is None:
            at = _after_comment(text, match)
            continue
        name, at = match[2].lower(), match.end()
        if match[1] or name in unclosed:
            continue
        if match[3].endswith("/"):
            done.append(GAP)
            continue
        end = _NEXT[name].search(text, at)
        if end is None:
            unclosed.add(name)
        elif end[1]:
            done.append(_EXTENSIONS[name](text[at : end.start()]))
            at = end.end()
    done.append(text[at:])
    return "".join(done)


def _after_comment(text: str, match: re.Match[str]) -> int:
    """Offset after a comment; a comment that fills a line is removed with the line."""
    end = text.find("-->", match.end())
    if end < 0:
        return len(text)
    end += 3
    if text[match.start() - 1 : match.start()] in ("\n", "") and text[end : end + 1] == "\n":
        return end + 1
    return end


# --- templates ------------------------------------------------------------------------------------------

_PARAMETER = re.compile(r"\{\{\{[^{}|]*(?:\|([^{}]*))?\}\}\}")
_BRACES = re.compile(r"(?:\{\{)+|\}\}|\[\[|\]\]|\|")


@dataclass(slots=True)
class _Template:
    """An open template: its parts so far, and the number of open links in it."""

    parts: list[list[str]] = field(default_factory=lambda: [[]])
    links: int = 0

    def texts(self) -> list[str]:
        return ["".join(part) for part in self.parts]


def _without_templates(text: str, title: str) -> str:
    """Replace templates by their text, or remove them; inner templates first."""
    if "{{" not in text:
        return text
    text = _PARAMETER.sub(r"\1", text)
    page = _Template()
    opened = [page]
    too_deep = at = 0
    for match in _BRACES.finditer(text):
        top, mark = opened[-1], match[0]
        if not too_deep:
            top.parts[-1].append(text[at : match.start()])
        at = match.end()
        if mark[0] == "{":
            count = len(mark) // 2
            fitting = 0 if too_deep else min(count, DEEPEST - len(opened))
            opened += [_Template() for _ in range(fitting)]
            too_deep += count - fitting
        elif mark == "}}":
            if too_deep:
                too_deep -= 1
            elif top is not page:
                opened.pop()
                name, *parts = top.texts()
                rendered = template_text(name, parts, title)
                opened[-1].parts[-1].append(GAP if rendered is None else rendered)
        elif too_deep:
            continue
        elif mark == "|" and top is not page and not top.links:
            top.parts.append([])
        else:
            top.links = max(0, top.links + {"[[": 1, "]]": -1, "|": 0}[mark])
            top.parts[-1].append(mark)
    opened[-1].parts[-1].append(text[at:] if not too_deep else "")
    return "".join(["".join(page.parts[0]), *(_after_first_line("|".join(each.texts())) for each in opened[1:])])


def _after_first_line(text: str) -> str:
    """Text after an unclosed template: its first line is dropped, the rest is kept as text of the page."""
    _, newline, rest = text.partition("\n")
    return GAP + newline + rest


# --- tables and lists -----------------------------------------------------------------------------------


def _without_tables(text: str) -> str:
    if "{|" not in text:
        return text
    lines: list[str] = []
    opened: list[int] = []
    for line in text.split("\n"):
        bare = line.lstrip(f" :\t{GAP}")
        if bare.startswith("{|"):
            opened.append(len(lines))
        elif bare.startswith("|}") and opened:
            del lines[opened.pop() :]
            line = GAP + bare[2:]
        lines.append(line)
    for start in reversed(opened):  # a table that is not closed ends at the next heading
        end = next((k for k in range(start, len(lines)) if lines[k].startswith("==")), len(lines))
        del lines[start:end]
    return "\n".join(lines)


_ELEMENTS = re.compile(r"<(/?)(table)\b[^<>]*>", re.IGNORECASE)
_ELEMENTS_AND_LISTS = re.compile(r"<(/?)(table|ul|ol|dl)\b[^<>]*>", re.IGNORECASE)


def _without_pairs(text: str, elements: re.Pattern[str]) -> str:
    """Remove HTML elements that can contain elements of the same name, with their content."""
    done: list[str] = []
    opened: list[tuple[str, int]] = []
    at = 0
    for match in elements.finditer(text):
        name = match[2].lower()
        if not match[1]:
            opened.append((name, len(done)))
        elif opened and opened[-1][0] == name:
            done.append(text[at : match.start()])
            del done[opened.pop()[1] + 1 :]
            done.append(BREAK)
            at = match.end()
            continue
        done.append(text[at : match.start()])
        at = match.end()
    done.append(text[at:])
    return "".join(done)


# --- links ----------------------------------------------------------------------------------------------

_BRACKETS = re.compile(r"\[\[(?!\[)|\]\]")
_IN_BRACKETS_OR_AFTER_COMMA = re.compile(r"(?:\s*\([^()]*\)|\s*（[^（）]*）|,[^,]*)\s*\Z")


def _with_links(text: str, namespaces: Namespaces) -> str:
    """Replace `[[links]]` by marks; remove images, categories and links to other languages."""
    opened: list[list[str]] = [[]]
    at = 0
    for match in _BRACKETS.finditer(text):
        opened[-1].append(text[at : match.start()])
        at = match.end()
        if match[0] == "[[":
            if len(opened) <= DEEPEST:
                opened.append([])
        elif len(opened) > 1:
            content = "".join(opened.pop())
            end = at
            while end < len(text) and text[end].islower():
                end += 1
            opened[-1].append(_link(content, text[at:end], namespaces))
            at = end
    opened[-1].append(text[at:])
    return "".join("".join(pieces) for pieces in opened)


def _link(content: str, trail: str, namespaces: Namespaces) -> str:
    """Marked text of a link, with the letters that follow it: `[[bus]]es` shows "buses"."""
    address, pipe, shown = content.partition("|")
    if namespaces.is_unseen(address):
        return GAP + trail
    if not pipe:
        shown = address.strip().removeprefix(":")
    elif not shown.strip():
        shown = _IN_BRACKETS_OR_AFTER_COMMA.sub("", address.rpartition(":")[2])
    shown = " ".join(shown.split("\n")) + trail
    target = None if "\n" in address or LINK in content else namespaces.target(address)
    return shown if target is None else linked(target, shown)


# --- tags -----------------------------------------------------------------------------------------------

_HIDDEN = re.compile(r"<span\b[^<>]*display\s*:\s*none[^<>]*>[^<>]*</span\s*>", re.IGNORECASE)
_TAG = re.compile(r"<(/?)([a-zA-Z][\w:]*)[^<>]*>")
_BLOCKS = listed(
    """p div blockquote center table tr td th caption dl dt dd ul ol hr h1 h2 h3 h4 h5 h6 pre section article
    figure"""
)
_ORDINAL = re.compile(r"\s*(?:st|nd|rd|th|o|a|er|re|e)\s*</sup", re.IGNORECASE)


def _without_tags(text: str) -> str:
    if "<" not in text:
        return text
    return _TAG.sub(_tag, _HIDDEN.sub("", text))


def _tag(match: re.Match[str]) -> str:
    """Text that replaces a tag: blocks are paragraphs, superscripts and subscripts are separate words."""
    closing, name = match[1], match[2].lower()
    if name in _BLOCKS:
        return BREAK
    if name == "li":
        return "\n" if closing else "\n* "
    if name == "br":
        return " "
    if name in ("sub", "sup"):
        if closing:
            return " " if match.string[match.end() : match.end() + 1].isalnum() else ""
        return "" if name == "sup" and _ORDINAL.match(match.string, match.end()) else " "
    return ""


# --- paragraphs -----------------------------------------------------------------------------------------

_EXTERNAL = re.compile(r"\[(?:https?:|ftp:|news:|mailto:|irc:)?(?://|(?<=:))[^\s\[\]<>]*([^\[\]\n]*)\]", re.IGNORECASE)
_ADDRESS = re.compile(r"\b(?:https?|ftp)://[^\s\[\]<>\ufdd0-\ufdef]*[^\s\[\]<>\ufdd0-\ufdef.,;:!?)'\"]", re.IGNORECASE)
_BEHAVIOUR = re.compile(r"__[A-Z]{3,}__")
_LEFTOVERS = re.compile(r"\{\{+|\}\}+|\[\[+|\]\]+|\{\||\|\}|</|<!--")
_QUOTES = re.compile("''+")
_MARKUP_OF_HEADING = re.compile(f"[=' :{GAP}{STRONG}{WEAK}{CLOSE}]+|{LINK}[^\ufdd2]*\ufdd2")


def _paragraphs(text: str, lists: bool) -> Iterator[str]:
    """Join lines to paragraphs, without headings, lists and remains of tables."""
    lines: list[str] = []
    lead, skipped_level = True, 0  # level of the heading whose section is skipped; 0 for none
    for line in text.split("\n"):
        bare = line.strip()
        heading = _heading(bare)
        if heading:
            level, name = heading
            lead = False
            if not skipped_level or level <= skipped_level:
                skipped_level = level if is_end_section(name) else 0
        prose = bool(bare.strip(f" {GAP}")) and not heading and not skipped_level and not _is_remains(bare)
        if prose and bare[0] not in "*#:;":
            lines.append(_inline(bare, lead))
            continue
        if lines:
            yield " ".join(lines)
            lines = []
        if prose and lists:
            yield _inline(bare.lstrip("*#:; "), lead)
    if lines:
        yield " ".join(lines)


def _heading(line: str) -> tuple[int, str] | None:
    if not line.startswith("="):
        return None
    line = line.rstrip(f" {GAP}")
    if not line.endswith("=") or len(line) < 3:
        return None
    level = min(len(line) - len(line.lstrip("=")), len(line) - len(line.rstrip("=")), 6)
    return level, _MARKUP_OF_HEADING.sub(" ", unescape(line))


def _is_remains(line: str) -> bool:
    """True if a line is part of a table or template without a beginning, a horizontal rule or a redirect."""
    bare = line.lstrip(f" {GAP}")
    return bare.startswith(("|", "! ", "!!", "----", "}}")) or bare.upper().startswith("#REDIRECT")


def _inline(line: str, lead: bool) -> str:
    line = _EXTERNAL.sub(lambda match: match[1] or GAP, line)
    line = _ADDRESS.sub(GAP, line) if "://" in line else line
    line = _LEFTOVERS.sub(" ", _BEHAVIOUR.sub("", line))
    line = _quotes(line, lead) if "''" in line else line
    return unescape(line) if "&" in line else line


def _quotes(line: str, lead: bool) -> str:
    """Replace runs of apostrophes by marks for bold, with MediaWiki's rule for lines in which they do not match.

    `''Time'''s editor` is italic and has an apostrophe.
    """
    texts = _QUOTES.split(line)
    runs = [len(match[0]) for match in _QUOTES.finditer(line)]
    for k, run in enumerate(runs):
        if run == 4 or run > 5:
            texts[k] += "'"
            runs[k] = min(run - 1, 5)
    if sum(run != 3 for run in runs) % 2 and sum(run != 2 for run in runs) % 2 and 3 in runs:
        k = min((k for k, run in enumerate(runs) if run == 3), key=lambda k: _unlike_bold(texts[k]))
        texts[k] = texts[k].removesuffix("'") + "'"
        runs[k] = 2
    done, bold = [texts[0]], False
    for run, text in zip(runs, texts[1:], strict=True):
        if run != 2:
            bold = not bold
            done.append((STRONG if bold else WEAK) if lead else "")
        done.append(text)
    return "".join(done) + (WEAK if bold and lead else "")


def _unlike_bold(before: str) -> int:
    """Sort key: the run of three apostrophes with the smallest key is an apostrophe and an italic mark."""
    if before[-1:] == " ":
        return 2
    return 0 if before[-2:-1] == " " else 1
