"""Titles of pages: normalise link addresses, recognise links to articles, follow redirects."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html import unescape
from typing import Protocol
from urllib.parse import unquote

from kglm.kg.ids import normalise_title


def listed(words: str, *, blanks: bool = False) -> frozenset[str]:
    """Set of the words of a text, separated by white space; with `blanks`, by lines and `|`."""
    return frozenset(word.strip() for word in (re.split(r"[|\n]", words) if blanks else words.split()))


# Namespaces of the English Wikipedia; the head of a dump names those of its own wiki.
_NAMESPACES = listed(
    """media|special|talk|user|user talk|wikipedia|wikipedia talk|wp|project|project talk|file|file talk|image
    image talk|mediawiki|mediawiki talk|template|template talk|help|help talk|category|category talk|portal
    portal talk|book|book talk|draft|draft talk|education program|education program talk|timedtext
    timedtext talk|module|module talk|gadget|gadget talk|gadget definition|gadget definition talk|topic|wt|t|mos""",
    blanks=True,
)
_UNSEEN = listed("file image media category")
_FILE_AND_CATEGORY = (6, 14)

# Prefixes of other wikis: projects by name and abbreviation, all language codes of two letters, some longer ones.
_LANGUAGES = listed(
    """aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee
    el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik io is it
    iu ja jv ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lv mg mh mi mk ml mn mr ms mt my na
    nb nd ne ng nl nn no nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk sl sm sn so sq
    sr ss st su sv sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu
    simple als arz ast azb bar bat-smg be-x-old be-tarask bcl bpy bug ceb ckb diq dsb frr fur gsw hak hif hsb ilo
    jbo kab krc lad lmo lzh mai map-bms min mwl mzn nan nap nds nds-nl new nrm oc pam pap pms pnb roa-rup roa-tara
    rue sah scn sco sh szl tpi vec vep vls war wuu xmf zea zh-classical zh-min-nan zh-yue yue"""
)
_PROJECTS = listed(
    """wiktionary wikt wikisource s wikiquote q wikibooks b wikinews n wikiversity v wikivoyage voy wikispecies
    species commons c meta m metawikipedia mediawikiwiki mw wikidata d wikimedia foundation phabricator bugzilla
    mailarchive gerrit toollabs tools doi pmid rfc isbn imdbtitle imdbname arxiv google ietf iarchive"""
)

_FORBIDDEN = re.compile(r"[\[\]{}|<>\n\x00-\x1f\x7f\ufffd\ufdd0-\ufdef]")
_PERCENT = re.compile("%[0-9A-Fa-f]{2}")
LONGEST_TITLE = 255
"""Maximum length of a title in bytes, as in MediaWiki."""


@dataclass(frozen=True, slots=True)
class Namespaces:
    """Namespaces of a wiki; the prefix before the first colon of an address names one."""

    others: frozenset[str] = _NAMESPACES
    """Namespaces without articles."""
    unseen: frozenset[str] = _UNSEEN
    """Namespaces whose links have no text on the page: images and categories."""

    @classmethod
    def named(cls, names: Iterable[tuple[int, str]]) -> Namespaces:
        """Namespaces of a wiki, given as (key, name) from the head of its dump."""
        named = [(key, _folded(name)) for key, name in names if key != 0 and name.strip()]
        return cls(
            _NAMESPACES | {name for _, name in named},
            _UNSEEN | {name for key, name in named if key in _FILE_AND_CATEGORY},
        )

    def target(self, address: str) -> str | None:
        """Normalised title of the article that a link leads to; None if it leads to no article of this wiki.

        >>> ENGLISH.target(" :iPod touch#History"), ENGLISH.target("Help:Contents")
        ('IPod_touch', None)
        """
        title = _plain(address).partition("#")[0].strip().removeprefix(":")
        if _prefix(title) == "w":  # the prefix of Wikipedia in its sister projects
            title = title.partition(":")[2]
        prefix = _prefix(title)
        if prefix in self.others or prefix in _PROJECTS or prefix in _LANGUAGES:
            return None
        title = normalise_title(title)
        if not title or _FORBIDDEN.search(title) or len(title.encode("utf-8", "replace")) > LONGEST_TITLE:
            return None
        return title

    def is_unseen(self, address: str) -> bool:
        """True if a link has no text on the page: an image, a category, the same article in another language."""
        prefix = _prefix(_plain(address).strip())
        return prefix in self.unseen or prefix in _LANGUAGES


ENGLISH = Namespaces()


def _plain(address: str) -> str:
    address = unescape(address) if "&" in address else address
    return unquote(address) if _PERCENT.search(address) else address


def _prefix(title: str) -> str:
    name, colon, _ = title[: LONGEST_TITLE + 1].partition(":")
    return _folded(name) if colon else ""


def _folded(name: str) -> str:
    return " ".join(name.replace("_", " ").split()).casefold()


class RedirectTable(Protocol):
    """Table from titles to the titles they redirect to, both normalised: a dictionary or a file."""

    def get(self, title: str, /) -> str | None: ...


def follow_redirects(title: str, redirects: RedirectTable) -> Iterator[str]:
    """Yield a title and the titles that its redirects lead to; stop when a cycle closes."""
    seen = set[str]()
    following: str | None = title
    while following is not None and following not in seen:
        yield following
        seen.add(following)
        following = redirects.get(following)
