"""Plain texts as values: a description, an address, an e-mail address, a code.

An id is `S::<text>`, with blanks, control characters and `%` as in a URL (`S::12%20Harbour%20Street`), because no id
contains blanks. A text stays whole: it is no name of an entity, and a completion copies its words in order.
"""

from __future__ import annotations

import re
from urllib.parse import quote, unquote

from kglm.errors import LiteralError

PREFIX = "S::"
LONGEST = 10_000
"""Characters of the longest text."""
_ESCAPED = re.compile(r"[\s%\x00-\x1f\x7f]")


def text_id(text: str) -> str:
    """The id of a text; blanks at its ends are left out.

    >>> text_id("12 Harbour Street")
    'S::12%20Harbour%20Street'
    """
    text = text.strip()
    if not text:
        raise LiteralError("a text is empty", remedy="leave the value out")
    if len(text) > LONGEST:
        raise LiteralError(f"a text of {len(text):,} characters", remedy=f"give at most {LONGEST:,}")
    text = text.encode("utf-8", "replace").decode()  # lone surrogates
    return PREFIX + _ESCAPED.sub(lambda match: quote(match[0], safe=""), text)


def text_of(id: str) -> str:
    """The text of an id `S::…`."""
    return unquote(id.removeprefix(PREFIX))


def canonical_text(id: str) -> str:
    """The canonical id of a text."""
    return text_id(text_of(id))
