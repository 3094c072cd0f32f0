"""What the name of a column or relation says about its values, and what a value that is a text looks like."""

from __future__ import annotations

import re

from kglm.kg.literals.units import currency_of, unit_of

_DATE_WORDS = frozenset([
    "born", "died", "founded", "established", "opened", "built", "published", "released", "inception", "launched",
    "dissolved", "created", "year", "date", "since", "birthday", "birthdate", "anniversary"
])  # fmt: skip
_DATE_NAMES = frozenset([
    "from", "until", "to", "start", "end", "joined", "hired", "left", "arrived", "birth", "death", "acquired",
    "closed", "completed", "start time", "end time", "point in time", "founded in", "built in",
    "opened in", "born in", "born on",
])  # fmt: skip
_COUNTING = frozenset([
    "number", "count", "amount", "total", "per", "many", "quantity", "employees", "population", "age", "size",
    "staff", "visitors", "pages", "years", "days", "months"
])  # fmt: skip
_TEXT_WORDS = frozenset([
    "description", "descriptions", "slogan", "motto", "tagline", "address", "addresses", "email", "e-mail", "mail",
    "phone", "telephone", "tel", "fax", "mobile", "url", "website", "web", "homepage", "note", "notes", "comment",
    "comments", "remark", "remarks", "code", "postcode", "zip", "zipcode", "isbn", "issn", "sku", "iban", "vat",
    "summary", "abstract", "bio", "biography", "quote", "quotation", "text", "about", "catchphrase", "epigraph",
    "coordinates", "username"
])  # fmt: skip
_SHORT_UNITS = frozenset([
    "m", "km", "cm", "mm", "kg", "g", "mg", "t", "l", "ml", "h", "s", "km2", "m2", "m3", "ha", "kw", "mw", "kwh",
    "pct", "percent"
])  # fmt: skip
_CURRENCY_SUFFIXES = frozenset([
    "eur", "usd", "gbp", "chf", "jpy", "cad", "aud", "sek", "nok", "dkk", "pln", "czk", "inr", "cny"
])  # fmt: skip
_STREET = re.compile(
    r"(?i)\b(?:street|st\.|road|rd\.|avenue|ave\.?|lane|square|place|drive|boulevard|quay|way|\w*(?:straße|strasse|str\.|"
    r"platz|weg|allee|gasse)|rue|via|calle)(?=\W|$)"
)
_EMAIL = re.compile(r"[^\s@]+@[^\s@]+\.[^\s@]+")
_URL = re.compile(r"(?i)(?:https?://|www\.)\S+|[\w-]+(?:\.[\w-]+)+/\S*")
_PHONE = re.compile(r"\+?[\d(][\d\s()/.-]{5,}\d")
_CODE = re.compile(r"(?=.*\d)(?=.*[A-Z/-])[A-Z0-9]+(?:[-/.][A-Z0-9]+)*")
_YES_OR_NO = frozenset(["yes", "no", "true", "false"])


def words_of(name: str) -> list[str]:
    """Words of the name of a column: "birth_date" and "Birth date" are the same."""
    return re.findall(r"[\w-]+", label_of(name).casefold().replace("_", " "))


def label_of(name: str) -> str:
    """The name of the relation of a column, without its unit: "height (m)" and "height_m" are "height"."""
    return " ".join(header_unit(name)[0].replace("_", " ").split())


def header_unit(name: str) -> tuple[str, str]:
    """The name of a column without its unit, and the unit; the unit is empty if the name has none."""
    name = " ".join(name.split())
    if match := re.fullmatch(r"(.+?) ?(?:\(([^()]+)\)|\[([^\[\]]+)\]|,? in ([^ ]+))", name):
        unit = (match[2] or match[3] or match[4]).removeprefix("in ").strip()
        if unit_of(unit) is not None or currency_of(unit) is not None:
            return match[1], unit
    stem, _, suffix = name.rpartition("_")
    if stem and suffix.casefold() in _SHORT_UNITS:
        return stem, suffix
    if stem and suffix.casefold() in _CURRENCY_SUFFIXES:
        return stem, suffix.upper()
    return name, ""


def is_about_dates(name: str) -> bool:
    """True if bare numbers under this name are years: "founded", "year of birth"; not "employees per year"."""
    words = words_of(name)
    if _COUNTING.intersection(words) or header_unit(name)[1]:
        return False
    return bool(_DATE_WORDS.intersection(words)) or " ".join(words) in _DATE_NAMES


def is_about_texts(name: str) -> bool:
    """True if the values under this name are texts: "slogan", "e-mail", "first line"."""
    words = words_of(name)
    return bool(_TEXT_WORDS.intersection(words)) or words[-1:] == ["line"]


def looks_like_text(value: str) -> bool:
    """True if a value is no name: a sentence, an address, an e-mail address, a URL, a telephone number, a code."""
    plain = " ".join(value.split())
    words = plain.split()
    if _EMAIL.fullmatch(plain) or _URL.fullmatch(plain) or _PHONE.fullmatch(plain) or _CODE.fullmatch(plain):
        return True
    if plain.casefold() in _YES_OR_NO or "\n" in value.strip() or len(plain) > 80 or len(words) > 9:
        return True
    if any(map(str.isdigit, plain)) and (_STREET.search(plain) or "," in plain):
        return True
    return len(words) >= 4 and (plain[-1] in ".!?…" or _ends_lower(words))


def _ends_lower(words: list[str]) -> bool:
    """True for a clause: most words are in lower case, as in "we build what turns"."""
    lower = sum(word[:1].islower() for word in words)
    return lower * 2 > len(words)
