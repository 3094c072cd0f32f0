"""Split raw text into words and sentences as in the Linked WikiText-2 corpus.

The corpus was tokenized with the English rules of spaCy 2.0. They equal those of current spaCy (the tokenizer of
`spacy.blank("en")`: no model, no download) with two exceptions:

* a hyphen or slash splits only between letters: "side - scrolling", "km / h", but "27.05-mile", "US 2/US 41";
* a hyphen beside a Greek letter does not split: "β-hydrogen".

Three defects of the corpus are not reproduced, because they create words that occur nowhere else: a dash joined to
the next word after a link ("—had"), "May" joined to the full stop after it, byte order marks in numbers.

spaCy imports torch, which takes seconds, so it is imported with the first text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from kglm.errors import DataError
from kglm.text.document import END, START

# Separators of chunks: white space, controls, zero-width spaces, byte order and direction marks, lone surrogates.
_SEPARATOR = (
    r"\s\x00-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069"
    r"\ufeff\ufff9-\ufffb\ud800-\udfff"
)
# An em dash is always a separate word.
_CHUNK = re.compile(f"—|[^—{_SEPARATOR}]+")
# Joiners, soft hyphens and variation selectors may be inside a word but are not words.
_INVISIBLE = re.compile(r"[\u00ad\u034f\u180e\u200c\u200d\ufe00-\ufe0f\U000e0000-\U000e01ef]+")

# Words that no rule splits, unless they are a special case like "cannot": most words of names, 30 times as fast.
_PLAIN_WORD = re.compile("[A-Za-z]+[0-9]*")

# Longer chunks (in characters) are split at punctuation only: spaCy needs quadratic time for them.
_LONGEST_CHUNK = 200
_PUNCTUATION = r"""!-/:-@\[-`{-~¡«»¿“”„‘’‚…—–、。，．！？；：「」『』（）"""
_LONG_CHUNK_PIECE = re.compile(f"[{_PUNCTUATION}]|[^{_PUNCTUATION}]+")

# Number of distinct chunks after which the memo and spaCy's string store are cleared.
_MEMO_LIMIT = 200_000


@dataclass(frozen=True, slots=True)
class Token:
    """A word with its character offsets: `text == original[start:end]`."""

    text: str
    start: int
    end: int


class Tokenizer:
    """Split text into words and sentences.

    White space, control characters, zero-width spaces (U+200B), byte order marks (U+FEFF) and direction marks
    separate words. A chunk between separators is split independently of its neighbours, so the result for each
    distinct chunk is cached. The output depends on the text alone.
    """

    def __init__(self) -> None:
        self._rules: Callable[[str], list[str]] | None = None
        self._memo: dict[str, tuple[tuple[str, int], ...]] = {}

    def words(self, text: str) -> list[str]:
        """Words of a text without offsets, for aliases and prompts.

        >>> tokenizer().words("The U.S. side-scrolling game isn't a 27.05-mile road.")
        ['The', 'U.S.', 'side', '-', 'scrolling', 'game', 'is', "n't", 'a', '27.05-mile', 'road', '.']
        """
        return [word for chunk in _CHUNK.findall(text) for word, _ in self._split(chunk)]

    def tokens(self, text: str, boundaries: Sequence[int] = ()) -> list[Token]:
        """Words with their offsets; no word crosses one of the `boundaries` (link edges).

        A boundary acts like a blank, as in the corpus: "Denver-based" with a link on "Denver" gives "Denver", "-based".
        """
        return [
            Token(word, start + offset, start + offset + len(word))
            for start, chunk in _chunks(text, boundaries)
            for word, offset in self._split(chunk)
        ]

    def sentences(self, text: str, boundaries: Sequence[int] = ()) -> list[list[Token]]:
        """The result of `tokens`, grouped into non-empty sentences."""
        tokens = self.tokens(text, boundaries)
        ends = _sentence_ends(text, tokens)
        return [tokens[a:b] for a, b in zip([0, *ends], ends, strict=False)]

    def _split(self, chunk: str) -> tuple[tuple[str, int], ...]:
        """Words of a chunk, each with its offset in the chunk."""
        words = self._memo.get(chunk)
        if words is not None:
            return words
        if len(chunk) > _LONGEST_CHUNK:
            return _with_offsets(_LONG_CHUNK_PIECE.findall(chunk))
        rules = self._rules
        if rules is None or len(self._memo) >= _MEMO_LIMIT:
            self._memo.clear()
            rules = self._rules = _spacy_rules()
        words = self._memo[chunk] = _with_offsets(rules(chunk))
        return words


@cache
def tokenizer() -> Tokenizer:
    """The tokenizer shared by this process."""
    return Tokenizer()


def _chunks(text: str, boundaries: Sequence[int]) -> Iterator[tuple[int, str]]:
    """Runs of text between separators and boundaries, each with its offset."""
    cuts = sorted(set(boundaries), reverse=True)
    if cuts and not 0 <= cuts[-1] <= cuts[0] <= len(text):
        wrong = cuts[0] if cuts[0] > len(text) else cuts[-1]
        raise DataError(
            f"boundary {wrong} lies outside the text of {len(text)} characters",
            remedy="give the edges of links as character offsets into this text",
        )
    for match in _CHUNK.finditer(text):
        start, end = match.span()
        while cuts and cuts[-1] <= start:
            cuts.pop()
        while cuts and cuts[-1] < end:
            cut = cuts.pop()
            yield start, text[start:cut]
            start = cut
        yield start, text[start:end]


def open_chunk(text: str, begin: int = 0) -> int:
    """Where the last chunk begins, whose words more text may change; the end of the text if a separator is last."""
    last = max((match.span() for match in _CHUNK.finditer(text, begin)), default=(begin, begin))
    return last[0] if last[1] == len(text) else len(text)


def _with_offsets(pieces: list[str]) -> tuple[tuple[str, int], ...]:
    """Adjacent pieces with their offsets, without the invisible ones."""
    found, offset = [], 0
    for piece in pieces:
        if not _INVISIBLE.fullmatch(piece):
            found.append((piece, offset))
        offset += len(piece)
    return tuple(found)


def _spacy_rules() -> Callable[[str], list[str]]:
    """spaCy's English tokenizer with the rules of the corpus."""
    from spacy.lang.char_classes import (
        ALPHA,
        ALPHA_LOWER,
        ALPHA_UPPER,
        CONCAT_QUOTES,
        LIST_ELLIPSES,
        LIST_ICONS,
    )
    from spacy.lang.en import English
    from spacy.tokenizer import Tokenizer as SpacyTokenizer  # type: ignore[import-not-found]
    from spacy.util import compile_infix_regex, compile_prefix_regex, compile_suffix_regex
    from spacy.vocab import Vocab

    greek = r"\u0370-\u03ff"
    infixes = [
        *LIST_ELLIPSES,
        *LIST_ICONS,
        r"(?<=[0-9])[+\-\*^](?=[0-9-])",
        rf"(?<=[{ALPHA_LOWER}{CONCAT_QUOTES}])\.(?=[{ALPHA_UPPER}{CONCAT_QUOTES}])",
        rf"(?<=[{ALPHA}]),(?=[{ALPHA}])",
        rf"(?<=[{ALPHA}])(?<![{greek}])(?:-{{1,3}}|–|~)(?=[{ALPHA}])(?![{greek}])",
        rf"(?<=[{ALPHA}])[:<>=/](?=[{ALPHA}])",
    ]
    english: Any = English.Defaults
    # Without emoticons that contain brackets, which would match the end of "(chapters 7 and 8)" or "(a song): ".
    special = {chunk: cases for chunk, cases in english.tokenizer_exceptions.items() if not set(chunk) & set("()[]{}")}
    # Contractions keep their apostrophe when a link boundary separates them from their word.
    for clitic in ("m", "ve", "re", "ll", "d", "s"):
        for apostrophe in "'’":
            special[apostrophe + clitic] = [{"ORTH": apostrophe + clitic}]
    # Made from its parts: `spacy.blank` would read the special cases twice, which takes most of the time.
    rules = SpacyTokenizer(
        Vocab(),
        rules=special,
        prefix_search=compile_prefix_regex(english.prefixes).search,
        suffix_search=compile_suffix_regex(english.suffixes).search,
        infix_finditer=compile_infix_regex(infixes).finditer,
        token_match=english.token_match,
        url_match=english.url_match,
    )

    def split(chunk: str) -> list[str]:
        if _PLAIN_WORD.fullmatch(chunk) and chunk not in special:
            return [chunk]
        return [token.text for token in rules(chunk)]

    return split


# --- sentences ------------------------------------------------------------------------------------


def _word_set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_STOPS = frozenset("!?…‽。！？؟।")
_OPENERS = frozenset("([{“‘«„‚'\"「『（")
_CLOSERS = frozenset(")]}”’»'\"」』）")

# Never end a sentence, in this spelling: "c. 1950", but "vitamin C. Then".
_TITLES = _word_set("Mr Mrs Ms Mx Dr Prof Messrs Mme Mlle Msgr vs v e.g E.g i.e I.e cf viz c ca approx feat")
# Do not end a sentence if a number follows.
_NUMBERED = _word_set("no nos vol vols p pp pt pts ch fig figs sec art op ex par eq")
# End a sentence only if the next word is in _SENTENCE_OPENERS. The same holds for letters with full stops
# ("U.S.", "J.") and for short words without vowels ("Sgt.", "Blvd.").
_ABBREVIATIONS = _word_set(
    """st gen col capt maj cmdr adm rev hon gov sen rep pres fr br supt inc co corp bros etc al ave hwy dept
    univ assoc jan feb mar apr jun jul aug sep sept oct nov dec ala ariz ark calif colo conn del fla ga ill
    ind kan ky la mass mich minn miss mo mont neb nev okla ore pa tenn tex va wash wis est ed eds trans"""
)
_DOTTED_LETTERS = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]")
_NO_VOWEL = re.compile(r"[B-DF-HJ-NP-TV-XZ][b-df-hj-np-tv-xz]{1,3}")
_SENTENCE_OPENERS = _word_set(
    """The A An In On At He She It They We I You His Her Its Their My Our This That These Those There Here
    After Although As By But And For From However If When While Since During Despite Following With Another
    Each Some Many Most Both Also According Because Before Between Upon Through Throughout Until Unlike To
    Then Thus Once Several Such So Yet Meanwhile Initially Eventually Finally Additionally Furthermore
    Nevertheless Instead Subsequently Though Whereas Within Without Among What Where Why How Later Today"""
)


def _sentence_ends(text: str, tokens: Sequence[Token]) -> list[int]:
    """Index after the last token of each sentence."""
    ends: list[int] = []
    first, i, quoted = 0, 0, False
    while i < len(tokens):
        word = tokens[i].text
        stop = i if word.endswith(".") or word in _STOPS else None
        quoted ^= word == '"'
        i += 1
        while stop is not None and i < len(tokens) and _belongs_to_stop(text, tokens, i, quoted):
            quoted &= tokens[i].text != '"'
            i += 1
        if i == len(tokens) or _paragraph_ends(text, tokens, i):
            quoted = False
        elif stop is None or not _ends_sentence(tokens, first, stop, i):
            continue
        ends.append(i)
        first = i
    return ends


def _belongs_to_stop(text: str, tokens: Sequence[Token], i: int, quoted: bool) -> bool:
    """True if token i, after a full stop, continues the sentence: another stop or a closing mark."""
    word = tokens[i].text
    if _paragraph_ends(text, tokens, i):
        return False
    if word in _STOPS or not word.strip("."):
        return True
    blank_before = tokens[i].start > tokens[i - 1].end
    if word == '"':
        blank_after = i + 1 == len(tokens) or tokens[i + 1].start > tokens[i].end
        return quoted if blank_before == blank_after else not blank_before
    return word in _CLOSERS and not (blank_before and word in "'’")


def _paragraph_ends(text: str, tokens: Sequence[Token], i: int) -> bool:
    """True if a blank line precedes token i."""
    start, end = tokens[i - 1].end, tokens[i].start
    return end - start > 1 and max(text.count("\n", start, end), text.count("\r", start, end)) > 1


def _ends_sentence(tokens: Sequence[Token], first: int, stop: int, i: int) -> bool:
    """True if the sentence from `first` ends with the stop at `stop` and the closing marks before token i."""
    mark, following = tokens[stop].text, tokens[i]
    if following.start == tokens[i - 1].end:
        return False
    ahead = i
    while ahead < len(tokens) - 1 and tokens[ahead].text in _OPENERS:
        ahead += 1
    word = tokens[ahead].text
    if not word[0].isalnum() or (word[0].islower() and not word[1:2].isupper()):
        return False
    if not mark.endswith(".") or mark.startswith(".."):
        return True
    stem = mark[:-1]
    if not stem and stop > first and tokens[stop - 1].end == tokens[stop].start:
        stem = tokens[stop - 1].text
        if stop - 1 == first and stem.isdecimal():  # "1. First point"
            return False
    key = stem.lower()
    if stem in _TITLES or (key in _NUMBERED and word[0].isdigit()):
        return False
    if key in _ABBREVIATIONS or _DOTTED_LETTERS.fullmatch(stem) or _NO_VOWEL.fullmatch(stem):
        return following.text in _SENTENCE_OPENERS
    return True


# --- detokenization ---------------------------------------------------------------------------------

_TO_THE_LEFT = _word_set(", . ; : ! ? … ... .... ) ] } ” ’ » % n't n’t 's 'm 've 're 'll 'd ’s ’m ’ve ’re ’ll ’d")
_TO_THE_RIGHT = _word_set("( [ { “ « ‘ $ £ € ¥ # US$ C$ A$")
_SPLIT_WORDS = frozenset([("can", "not"), ("Can", "not"), ("gon", "na"), ("got", "ta")])
_LONGEST_QUOTATION = 150  # words; beyond this distance, a mark opens a new quotation


def detokenize(words: Sequence[str]) -> str:
    """Join corpus words into readable text without sentence markers.

    >>> detokenize(["@@START@@", "It", "is", "n't", "side", "-", "scrolling", "(", "yet", ")", "."])
    "It isn't side-scrolling (yet)."
    """
    spaced = zip(words, blanks(words), strict=True)
    return "".join(f" {word}" if blank else word for word, blank in spaced if word not in (START, END))


def blanks(words: Sequence[str]) -> list[bool]:
    """For each word, whether readable text has a blank before it; False for sentence markers."""
    places = [place for place, word in enumerate(words) if word not in (START, END)]
    visible = [words[place] for place in places]
    opened: dict[str, int] = {}  # position of each open quotation mark
    found = [False] * len(words)
    glued = True
    for i, (before, word, after) in enumerate(zip(["", *visible], visible, [*visible[1:], ""], strict=False)):
        left, right = _glue(before, word, after)
        if word in ('"', "'") and not (left and right):
            closing = i - opened.pop(word, -_LONGEST_QUOTATION) < _LONGEST_QUOTATION
            if closing or word == '"' or before[-1:] not in ("s", "z"):  # else a possessive: "the dogs ' bowls"
                left, right = closing, not closing
                if not closing:
                    opened[word] = i
        found[places[i]] = not (glued or left)
        glued = right
    return found


def _glue(before: str, word: str, after: str) -> tuple[bool, bool]:
    """Two flags: the word is joined to the word before it, and to the word after it."""
    if word in _TO_THE_LEFT or (before, word) in _SPLIT_WORDS:
        return True, False
    if word in _TO_THE_RIGHT:
        return False, word != "#" or after[:1].isalnum()
    if word == "—":
        return True, True
    if word in ("-", "/"):
        letters = before[-1:].isalpha() and after[:1].isalpha()
        inside = letters or (word == "-" and before[-1:].isdigit() and after[:1].isdigit())
        return inside, inside
    if word == "°":
        return True, after in ("C", "F", "K")
    if word == "'":
        return True, after == "s" and before[-1:].isalnum()  # "Asahi ' s": split where a link or italics ended
    return word[:1] == "-" and word[1:2].isalpha() and before[-1:].isalnum(), False
