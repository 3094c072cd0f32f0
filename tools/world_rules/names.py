"""Rules for names: labels and aliases of entities."""

from __future__ import annotations

import re
import unicodedata

from kglm.kg.importers.records import without_escapes

_INVISIBLE = re.compile(r"[\u00ad\u200b-\u200f\u202a-\u202e\u2060\ufeff\U000e0000-\U000e007f]")
_BEFORE_MARK = re.compile(r" +([,;:!?.)\]](?: |$))")
_AFTER_BRACKET = re.compile(r"([(\[]) +")
_CONTRACTION = re.compile(r" (n't|'s|'m|'re|'ve|'ll|'d)\b")
_QUOTED = re.compile(r'^["“„](.*)["”]$')
_WORD = re.compile(r"\S+")
_ROMAN = re.compile(r"(?=[ivx])(x{0,3})(ix|iv|v?i{0,3})")
_SMALL = frozenset(
    "a an and as at but by for from in into of on or per the to upon via vs with"
    " von van der den de da di do dos das du del della la le les el al ibn bin bint y e zu zum zur af av und et".split()
)
_UPPER = frozenset(
    "ngc ugc ic hd hms uss rms ss us uk usa eu un bbc cbs nbc abc cnn mtv hbo nba nfl nhl mlb fifa uefa nasa fbi cia"
    " nato fc ac cd dvd tv ii iii iv vi vii viii ix xi xii xiii xiv xv xvi dc mc llc plc iso iec ibm amd ngo bc ad"
    " lgbt gmbh dj kgb ussr raf rna dna mgm pbs espn ufc wwe ucla mit".split()
)
_META = re.compile(r"(?:Category|Template|Wikipedia|Portal|Module|Help|User|MediaWiki|Wikidata|File):|WikiProject")
_MONTH = "january|february|march|april|may|june|july|august|september|october|november|december"
_ORDINAL = (
    "first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|eleventh|twelfth|thirteenth|last|final|pilot|"
    r"next|previous|new|old|original|same|other|\d+(?:st|nd|rd|th)"
)
_PART = "season|series|episode|game|film|movie|album|book|novel|edition|version|one|song|single|volume|sequel|part"
_GENERIC = re.compile(
    rf"(?:the |a |an |his |her |its |their )?(?:(?:{_ORDINAL}) )+(?:{_PART})s?"
    rf"|(?:the|a|an|his|her|its|their|this|that|these|those) (?:{_PART})s?"
    r"|(?:in|on|at|by|from|since|during|until|the|of|and|for|with|his|her|its|their) ?[\d–/-]*"
    r"|(?:in|on|the|of) \d[\d–/ ]*s?"
    r"|he|she|it|they|him|them|themselves|himself|who|which|this|that|one|here|there|same|others?"
    r"|(?:the )?\w+ of (?:the same name|that name|this name)|(?:the )?same \w+"
    rf"|\d+(?:st|nd|rd|th)|(?:{_ORDINAL})|(?:{_MONTH}) \d{{4}}"
)
_FLAG = re.compile("[\U0001f000-\U0001faff\u2600-\u27bf]")
_MARKUP = re.compile(r"https?:|www\.|[@<>={}|\\^~`_]|\[|\]|&[a-z]+;|\?\?")
_CODES = frozenset("IN IT IS NO ME AT BE AM AS SO TO DO BY MY OR AN IF GO UP ON OF HE WE AI II".split())
"""Two letters that are country codes as well as English words in capitals."""


def clean(text: str) -> str:
    """A name without escapes, invisible characters, the blanks of a tokenizer, and quotation marks around it."""
    text = without_escapes(text).replace('\\"', '"').replace("\u00a0", " ")
    text = _INVISIBLE.sub("", unicodedata.normalize("NFC", text))
    text = _AFTER_BRACKET.sub(r"\1", _BEFORE_MARK.sub(r"\1", " ".join(text.split())))
    text = _CONTRACTION.sub(r"\1", text.replace("ca n't", "can't"))
    quoted = _QUOTED.match(text)
    text = quoted[1].strip() if quoted and '"' not in quoted[1] else text.strip()
    if text.islower():  # from a text, by a tokenizer
        text = text.replace(" - ", "-").rstrip(".") or text
    return text


def is_meta(label: str) -> bool:
    """True for pages about the encyclopedia itself: categories, templates, projects."""
    return _META.match(label) is not None


def is_name(label: str) -> bool:
    """False for labels that are no words: ids, punctuation."""
    return any(letter.isalnum() for letter in label) and not re.fullmatch(r"[QP]\d+", label)


def is_generic(label: str) -> bool:
    """True for words of a text that name nothing by themselves: "third season", "in 1962", "the original game"."""
    return _GENERIC.fullmatch(label) is not None


def with_capitals(text: str) -> str:
    """A name in lower case as a title: "messier 100" -> "Messier 100", "j. k. rowling" -> "J. K. Rowling"."""
    words = _WORD.findall(text)
    last = len(words) - 1
    return " ".join(_capitalised(word, ends=k in (0, last)) for k, word in enumerate(words))


def _capitalised(word: str, *, ends: bool) -> str:
    bare = word.strip("()[],.:;!?\"'")
    if bare in _UPPER or (len(bare) > 1 and _ROMAN.fullmatch(bare)):
        return word.replace(bare, bare.upper())
    if (bare in _SMALL and not ends) or any(letter.isupper() for letter in word):
        return word
    if re.fullmatch(r"(?:\w\.)+", word):
        return word.upper()
    if (parts := re.split(r"([-–/])", word)) and len(parts) > 1:
        return "".join(part if part in _SMALL and k else _first_upper(part) for k, part in enumerate(parts))
    return _first_upper(word)


def _first_upper(word: str) -> str:
    if re.match(r"(mc|o['’]|d['’])[a-zà-ž]{3,}", word):
        split = 2
        return word[0].upper() + word[1:split] + word[split].upper() + word[split + 1 :]
    for k, letter in enumerate(word):
        if letter.isalpha():
            return word[:k] + letter.upper() + word[k + 1 :]
        if letter.isdigit():
            return word
    return word


def junk_alias(alias: str, label: str, *, named: bool) -> str | None:
    """Why an alias of an entity with this label is left out; None if it is a good one.

    `named` says that the entity has a proper name, not that of a concept.
    """
    if alias == label:
        return "the label again"
    if not any(letter.isalnum() for letter in alias) or _FLAG.search(alias):
        return "no letters, or a symbol"
    if len(alias) == 1 and len(label) > 1:
        return "one letter"
    if _MARKUP.search(alias) or is_meta(alias) or not is_name(alias) or is_generic(alias):
        return "markup, or no name"
    if len(alias) > max(60, 2 * len(label)):
        return "a sentence"
    if alias in _CODES:
        return "a code that is an English word"
    if "/" in alias and "/" not in label and not re.search(r"\d/\d|[A-Z]/[A-Z]", alias):
        return "two names with a slash"
    if named and any(map(str.isupper, label[:1])):
        if alias.islower() and len(alias) <= 3:
            return "a code in lower case"
        if label.casefold() != label and len(alias.split()) > 2 and label.casefold() in alias.split():
            return "a sentence"
        if alias.islower() and alias.isascii() and " " not in alias:
            return "a word in lower case"
        if re.search(r"[^\W\d_] [a-z]+$", alias) and alias.rpartition(" ")[0] == label:
            return "the label and a word"
    if without_repeats(alias) == without_repeats(label) and len(alias) > len(label):
        return "a misspelling"
    return None


def without_repeats(text: str) -> str:
    """Letters without repetition, in lower case: equal for "Detroit" and "Detroiit"."""
    return re.sub(r"(\w)\1+", r"\1", text.casefold())


def distinct(names: list[str]) -> list[str]:
    """Names that differ by more than case; of several, the one with the most capitals at beginnings of words."""
    best: dict[str, str] = {}
    for name in names:
        key = name.casefold()
        if key not in best or _initials(name) > _initials(best[key]):
            best[key] = name
    return list(best.values())


def _initials(name: str) -> tuple[int, int]:
    words = name.split()
    return sum(word[:1].isupper() for word in words), -sum(word.isupper() and len(word) > 3 for word in words)
