"""Convert rendered pages (HTML of Wikipedia's REST and parse APIs and of its HTML dumps) to marked text.

As in `wikitext`, prose and links are kept; tables, boxes, notes, images, headings, lists and the sections at the end
are removed.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any
from urllib.parse import unquote, urlsplit

from selectolax.lexbor import LexborHTMLParser

from kglm.kg.ids import normalise_title
from kglm.text.marked import BREAK, FORMULA, GAP, STRONG, WEAK, linked, without_marks
from kglm.text.wiki.sections import is_end_section
from kglm.text.wiki.titles import ENGLISH, Namespaces, listed

DEEPEST = 500
"""Maximum depth of nested elements; deeper tags are ignored, because the parser needs quadratic time in the depth."""

BLOCKS = listed(
    """address article aside blockquote body center dd details div dl dt fieldset figcaption figure footer form h1 h2
    h3 h4 h5 h6 header hr html li main nav ol p pre section summary table tbody td tfoot th thead tr ul"""
)
_LISTS = listed("ul ol dl li dt dd menu dir")
_DROPPED = listed(
    """table figure figcaption figure-inline img picture audio video source track object embed iframe map canvas svg
    math head script style link meta noscript template title nav footer aside form fieldset button select input
    textarea pre"""
)
_SILENT = listed("head script style link meta noscript template title wbr")
"""Removed elements that were never visible: they leave no gap."""
_DROPPED_CLASSES = listed(
    """infobox infobox_v2 infobox_v3 navbox navbox-styles vertical-navbox sidebar hatnote dablink rellink mainarticle
    mw-editsection mw-editsection-like reference references reflist refbegin refend mw-references-wrap mw-cite-backlink
    thumb thumbinner thumbcaption tmulti gallery gallerybox gallerytext toc toclimit tocright noprint mbox ambox ombox
    tmbox cmbox fmbox dmbox imbox mbox-small metadata mw-jump-link catlinks printfooter mw-indicators geo geo-inline
    geo-nondefault geo-default coordinates shortdescription IPA IPA-common authority-control sistersitebox side-box
    portal portalbox portal-bar navigation-not-searchable error mw-ext-cite-error Inline-Template Template-Fact
    noexcerpt quotebox succession-box ext-phonos audiolink haudio listen mw-kartographer-container stub asbox
    mw-empty-elt mw-magiclink-isbn sr-only visualhide mw-file-element wikitable
    respell barbox legend timeline-wrapper mw-highlight mw-ext-score pull-quote rquote"""
)
_DROPPED_IDS = listed("toc coordinates siteSub contentSub jump-to-nav catlinks mw-navigation footer siteNotice")
_DROPPED_ROLES = listed("navigation note search banner contentinfo complementary")
_FORMULAS = listed("mwe-math-element texhtml mwe-math-fallback-image-inline")
_DROPPED_TYPES = re.compile(
    r"mw:(?:File|Image|Video|Audio)\b|mw:Extension/(?:ref|references|gallery|timeline|score|graph|indicator|imagemap)\b"
)
_HIDDEN = re.compile(r"display\s*:\s*none", re.IGNORECASE)
_ORDINAL = re.compile(r"\s*(?:st|nd|rd|th|o|a|er|re|e)\s*\Z", re.IGNORECASE)
_SITE_NAME = re.compile(r"\s+[-–—|]\s+(?:[^-–—|]*\b)?Wikipedia.*\Z", re.DOTALL)


def read_html(
    html: str, title: str, *, host: str | None = None, namespaces: Namespaces = ENGLISH, lists: bool = False
) -> str:
    """Prose of a rendered page as marked text. `host` is the host of its wiki: links to other hosts are dropped."""
    tree = LexborHTMLParser(_flattened(without_marks(html)))
    return _Reader(normalise_title(title), host or _host(tree), namespaces, lists).read(_content(tree))


def html_title(html: str) -> str | None:
    """Title of a page, without the name of the site; None if it has none."""
    tree = LexborHTMLParser(_flattened(html))
    for selector in ("#firstHeading", "title", "h1"):
        node = tree.css_first(selector)
        if node is not None and (text := " ".join(node.text(deep=True).split())):
            return _SITE_NAME.sub("", text)
    return None


def _host(tree: Any) -> str | None:
    """Host of the wiki, if the page names it."""
    for selector in ('link[rel="canonical"]', "base", 'link[rel="dc:isVersionOf"]'):
        node = tree.css_first(selector)
        if node is not None and (host := host_of(node.attributes.get("href") or "")):
            return host
    return None


def host_of(address: str) -> str | None:
    """Host of an address; the mobile host is replaced by the main one."""
    try:
        host = urlsplit(address).hostname
    except ValueError:
        return None
    return host.replace(".m.", ".", 1) if host else None


def _content(tree: Any) -> Any:
    for selector in ("#mw-content-text .mw-parser-output", ".mw-parser-output", "#mw-content-text", "main", "body"):
        if (node := tree.css_first(selector)) is not None:
            return node
    return tree.root


class _Reader:
    """Traverses a page once, without recursion, and writes marked text."""

    def __init__(self, title: str, host: str | None, namespaces: Namespaces, lists: bool) -> None:
        self.title, self.host, self.namespaces, self.lists = title, host, namespaces, lists
        self.done: list[str] = []
        self.lead = True
        self.skipped_level = 0  # level of the heading whose section is skipped; 0 for none

    def read(self, root: Any) -> str:
        stack: list[Any] = [root]  # nodes to visit, and texts to write after them
        while stack:
            node = stack.pop()
            if isinstance(node, str):
                self._write(node)
            elif node.is_text_node:
                self._write(" ".join(_blank_edged(node.text_content or "")).replace("⁄", "/"))
            elif node.is_element_node:
                before, after, descend = self._visit(node)
                self._write(before)
                if descend:
                    stack.append(after)
                    stack += reversed(list(node.iter(include_text=True)))
        return "".join(self.done)

    def _write(self, text: str) -> None:
        if text and (not self.skipped_level or text == BREAK):
            self.done.append(text)

    def _visit(self, node: Any) -> tuple[str, str, bool]:
        """Texts to write before and after an element, and whether to visit its children."""
        tag, attributes = node.tag, node.attributes
        classes = set((attributes.get("class") or "").split())
        if tag in ("h1", "h2", "h3", "h4", "h5", "h6"):
            self._heading(int(tag[1]), node.text(deep=True))
            return BREAK, "", False
        if tag == "math" or (classes & _FORMULAS and "mvar" not in classes):
            return FORMULA, "", False
        if tag in _DROPPED or (tag in _LISTS and not self.lists) or self._is_boilerplate(classes, attributes):
            return ("" if tag in _SILENT else BREAK if tag in BLOCKS else GAP), "", False
        if tag in BLOCKS:
            return BREAK, BREAK, True
        if tag == "br":
            return " ", "", False
        if tag in ("b", "strong") and self.lead:
            return STRONG, WEAK, True
        if tag in ("sub", "sup"):
            return self._raised(node, tag)
        if tag == "a" and (target := self._target(attributes, classes)):
            before, _, after = linked(target, "\n").partition("\n")
            return before, after, True
        return "", "", True

    def _heading(self, level: int, text: str) -> None:
        self.lead = self.lead and level == 1
        if not self.skipped_level or level <= self.skipped_level:
            self.skipped_level = level if is_end_section(text.partition("[")[0]) else 0

    @staticmethod
    def _is_boilerplate(classes: set[str], attributes: dict[str, str | None]) -> bool:
        return bool(
            classes & _DROPPED_CLASSES
            or attributes.get("id") in _DROPPED_IDS
            or attributes.get("role") in _DROPPED_ROLES
            or _DROPPED_TYPES.search(attributes.get("typeof") or "")
            or _HIDDEN.search(attributes.get("style") or "")
            or any(name.startswith(("box-", "navbox-", "infobox-")) for name in classes)
        )

    @staticmethod
    def _raised(node: Any, tag: str) -> tuple[str, str, bool]:
        """Blanks around superscripts and subscripts, which are separate words in the corpus, except in "1st" and
        fractions."""
        parent = (node.parent.attributes.get("class") or "").split() if node.parent is not None else ()
        if "frac" in parent:
            return (" " if tag == "sup" else ""), "", True
        if tag == "sup" and _ORDINAL.match(node.text(deep=True)):
            return "", "", True
        following = node.next
        glued = following is not None and following.is_text_node and (following.text_content or " ")[0].isalnum()
        return " ", (" " if glued else ""), True

    def _target(self, attributes: dict[str, str | None], classes: set[str]) -> str | None:
        """Title that a link leads to; None for missing pages, other wikis and other addresses."""
        address = attributes.get("href") or ""
        if classes & {"selflink", "mw-selflink"}:
            return self.title
        if classes & {"new", "extiw", "external", "mw-redlink"} or "Interwiki" in (attributes.get("rel") or ""):
            return None
        try:
            parts = urlsplit(address.strip())
        except ValueError:
            return None
        if parts.scheme not in ("", "http", "https") or "redlink=1" in parts.query:
            return None
        if parts.netloc and not self._is_own(host_of(address.strip()) or ""):
            return None
        path = parts.path
        for beginning in ("./", "/wiki/", "../wiki/"):
            if path.startswith(beginning):
                return self.namespaces.target(unquote(path.removeprefix(beginning)).replace("#", "\n"))
        return None

    def _is_own(self, host: str) -> bool:
        return host == self.host if self.host else host.endswith("wikipedia.org")


def _blank_edged(text: str) -> list[str]:
    """Words of a text node, with an empty word for white space at the start or end."""
    words = text.split()
    if not words:
        return ["", ""] if text else [""]
    return [*([""] if text[0].isspace() else []), *words, *([""] if text[-1].isspace() else [])]


# --- depth ----------------------------------------------------------------------------------------------

_TAG = re.compile(r"<(/?)([a-zA-Z][\w:-]*)[^<>]*>")
# Elements that cannot contain themselves or have no content: they do not add to the depth.
_FLAT = listed(
    "p li dt dd td th tr tbody thead tfoot option br img hr wbr link meta input area base col embed source track param"
)


def _flattened(html: str) -> str:
    """The page without tags that are nested deeper than `DEEPEST`, and without the content of formulas."""
    for name in ("math", "svg"):
        html = _emptied(html, name)
    if html.count("<") <= DEEPEST:
        return html
    opened, ignored = Counter[str](), Counter[str]()
    depth = 0
    done: list[str] = []
    at = 0
    for match in _TAG.finditer(html):
        name = match[2].lower()
        if name in _FLAT:
            continue
        if not match[1]:
            if depth < DEEPEST:
                opened[name] += 1
                depth += 1
                continue
            ignored[name] += 1
        elif ignored[name]:
            ignored[name] -= 1
        else:
            if opened[name]:
                opened[name] -= 1
                depth -= 1
            continue
        done.append(html[at : match.start()])
        at = match.end()
    return html if not done else "".join(done) + html[at:]


def _emptied(html: str, name: str) -> str:
    """Remove the content of math or svg elements, whose tags do not follow the rules of HTML."""
    done: list[str] = []
    at = 0
    while (start := html.find(f"<{name}", at)) >= 0 and (end := html.find(f"</{name}>", start)) >= 0:
        done.append(f"{html[at:start]}<{name}>")
        at = end
    return "".join(done) + html[at:]
