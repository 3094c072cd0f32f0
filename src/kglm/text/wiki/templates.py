"""Render the templates of wikitext that contain words of a sentence.

`TEMPLATES` lists them with functions that return their text, which is wikitext and may contain links. All other
templates are removed: most are boxes, notes, sounds and remarks of editors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache

from kglm.text.marked import BREAK, FORMULA
from kglm.text.wiki.convert import converted
from kglm.text.wiki.titles import listed

_NAMED = re.compile(r"\s*([\w -]{1,40}?)\s*=")
_DIGITS = re.compile(r"\d+")
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip


@dataclass(slots=True)
class Arguments:
    """Arguments of a template."""

    positional: list[str] = field(default_factory=list)
    named: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, parts: Iterable[str]) -> Arguments:
        found = cls()
        for part in parts:
            name = _NAMED.match(part)
            if name is None:
                found.positional.append(part.strip())
            elif name[1].isdecimal() and int(name[1]) == len(found.positional) + 1:
                found.positional.append(part[name.end() :].strip())
            else:
                found.named[name[1]] = part[name.end() :].strip()
        return found

    def at(self, place: int) -> str:
        """Positional argument, counted from 1; "" if it is missing."""
        return self.positional[place - 1] if len(self.positional) >= place else ""

    def yes(self, *names: str) -> bool:
        return any(self.named.get(name, "").lower() in ("y", "yes", "1", "on", "true") for name in names)


Renderer = Callable[[Arguments], str]


def template_text(name: str, parts: list[str], title: str) -> str | None:
    """Text of a template on the page `title`; None if it is removed."""
    name = " ".join(name.replace("_", " ").split()).removeprefix("Template:").removeprefix("template:")
    if name == "PAGENAME":
        return title
    key = name.lower()
    function, colon, argument = name.partition(":")
    if colon and (render := FUNCTIONS.get(function.lower())):
        return render(argument.strip())
    if (word := WORDS.get(key)) is not None:
        return word
    if render_template := TEMPLATES.get(key):
        return render_template(Arguments.read(parts))
    if key.startswith("lang-"):
        return _with_language(key.removeprefix("lang-"), Arguments.read(parts), 1)
    if key.startswith("script/"):
        return Arguments.read(parts).at(1)
    return None


# --- renderers ----------------------------------------------------------------------------------------


def _argument(place: int, *names: str) -> Renderer:
    """Renderer of one argument, by position or else by name."""
    return lambda of: of.at(place) or next((of.named[name] for name in names if of.named.get(name)), "")


def _last(of: Arguments) -> str:
    return of.positional[-1] if of.positional else ""


def _joined(blank: str) -> Renderer:
    return lambda of: blank.join(part for part in of.positional if part)


def _wrapped(before: str, after: str = "") -> Renderer:
    return lambda of: f"{before}{of.at(1)}{after}" if of.at(1) else ""


def _quotation(of: Arguments) -> str:
    return f"{BREAK}{of.at(1) or of.named.get('text') or of.named.get('quote', '')}{BREAK}"


def _with_language(code: str, of: Arguments, place: int) -> str:
    """ "French: mot"; without the language if it is unknown or `label` is none."""
    text, name = of.at(place) or of.named.get("text", ""), _language(code)
    if not text or not name or of.named.get("label") == "none":
        return text
    return f"{name}: {text}"


@cache
def _language(code: str) -> str:
    from babel import Locale

    return str(Locale("en").languages.get(code.replace("-", "_"), ""))


def _nihongo(of: Arguments) -> str:
    english, rest = of.at(1), [part for part in of.positional[1:] if part]
    if not english:
        return ", ".join(rest)
    return f"{english} ({', '.join(rest)})" if rest else english


_CHINESE = {
    "c": "Chinese", "s": "simplified Chinese", "t": "traditional Chinese", "p": "pinyin", "hp": "Hanyu Pinyin",
    "w": "Wade–Giles", "j": "Jyutping", "y": "Yale", "l": "literally",
}  # fmt: skip


def _chinese(of: Arguments) -> str:
    return "; ".join(f"{label}: {of.named[key]}" for key, label in _CHINESE.items() if of.named.get(key))


def _date(year: str, month: str, day: str, day_first: bool) -> str:
    """A date by its numbers; a month that is not a number stays unchanged."""
    if month.isdecimal() and 1 <= int(month) <= 12:
        month = _MONTHS[int(month) - 1]
    day = day.lstrip("0")
    if not month:
        return year
    if not day:
        return f"{month} {year}".strip()
    return f"{day} {month} {year}".strip() if day_first or not year else f"{month} {day}, {year}"


def _dated(of: Arguments) -> str:
    """Birth dates and similar: year, month, day; a second date is ignored."""
    parts = [part if _DIGITS.fullmatch(part) else "" for part in (of.at(1), of.at(2), of.at(3))]
    if not parts[0]:
        return of.at(1)
    return _date(parts[0], parts[1], parts[2], of.yes("df"))


def _old_style_date(of: Arguments) -> str:
    comma = "," if of.at(1)[:1].isalpha() else ""
    return f"{of.at(1)}{comma} {of.at(2)}"


def _as_of(of: Arguments) -> str:
    if of.named.get("alt"):
        return of.named["alt"]
    since = "since" if of.yes("since") else "as of"
    since = since if of.yes("lc") else since.capitalize()
    return f"{since} {_date(of.at(1), of.at(2), of.at(3), of.named.get('df', '').lower() != 'us')}"


def _circa(of: Arguments) -> str:
    return " – ".join(f"c. {year}" for year in of.positional[:2] if year) or "c."


def _span_of(before: str) -> Renderer:
    """Renderer of a range of years, such as "r. 1603–1625"."""
    return lambda of: before + "–".join(year for year in of.positional[:2] if year)


def _fraction(of: Arguments) -> str:
    whole, above, below = ["", "", *of.positional][-3:] if len(of.positional) < 3 else of.positional[:3]
    if not above:
        return f"1/{below}" if below else ""
    return f"{whole} {above}/{below}".strip()


def _number(text: str) -> str:
    """A number with commas between thousands; other texts stay unchanged."""
    plain = text.replace(",", "")
    whole, point, rest = plain.partition(".")
    if not re.fullmatch(r"[-−]?\d{1,40}", whole) or (point and not rest.isdecimal()):
        return text
    sign, digits = (whole[0], whole[1:]) if whole[0] in "-−" else ("", whole)
    grouped = f"{int(digits):,}" if not digits.startswith("0") else digits
    return f"{sign}{grouped}{point}{rest}"


def _val(of: Arguments) -> str:
    value = _number(of.at(1))
    if _DIGITS.match(of.at(2)):
        value += f" ± {of.at(2)}"
    if of.named.get("e"):
        value += f" × 10<sup>{of.named['e']}</sup>"
    unit = of.named.get("u") or of.named.get("ul") or ""
    return f"{value} {unit}".strip()


def _chemical(of: Arguments) -> str:
    return "".join(f"<sub>{part}</sub>" if part.isdecimal() else part for part in of.positional)


def _power(of: Arguments) -> str:
    base, exponent = (of.at(1), of.at(2)) if of.at(2) else ("10", of.at(1))
    return f"{base}<sup>{exponent}</sup>" if exponent else base


def _raised(of: Arguments) -> str:
    return f" × 10<sup>{of.at(1)}</sup>"


def _sic(of: Arguments) -> str:
    text = "".join(of.positional)
    return text if of.yes("hide") else f"{text} [''sic'']".strip()


def _height(of: Arguments) -> str:
    for one, two in (("ft", "in"), ("m", ""), ("cm", "")):
        if of.named.get(one):
            second = f" {of.named[two]} {two}" if two and of.named.get(two) else ""
            return f"{of.named[one]} {one}{second}"
    return ""


def _convert(of: Arguments) -> str:
    return converted(of.positional, of.named)


def _convert_abbreviated(of: Arguments) -> str:
    return converted(of.positional, {"abbr": "on"} | of.named)


def _ship(prefix: str) -> Renderer:
    return lambda of: _ship_link(prefix, of.at(1), of.at(2), of.at(3))


def _ship_link(prefix: str, name: str, hull: str, form: str) -> str:
    """Link to a ship; `form` selects which of prefix, name and hull number are shown."""
    full = f"{prefix} {name}".strip()
    title = f"{full} ({hull})" if hull else full
    shown = {"1": hull, "2": full, "3": name, "4": f"{prefix} {hull}", "5": f"{name} ({hull})"}.get(form) or title
    return f"[[{title}|{shown}]]"


def _ship_class(of: Arguments) -> str:
    title = f"{of.at(1)}-class {of.at(2)}".strip()
    return f"[[{title}]]" if of.at(1) else ""


def _interlanguage_link(of: Arguments) -> str:
    """Link to an article that may exist only in another Wikipedia."""
    return f"[[{of.at(1)}|{of.named.get('lt') or of.at(1)}]]" if of.at(1) else ""


def _country(of: Arguments) -> str:
    return f"[[{of.at(1)}|{of.named.get('name') or of.at(1)}]]" if of.at(1) else ""


def _note(of: Arguments) -> str:
    return {"flat": "♭", "b": "♭", "sharp": "♯", "#": "♯", "natural": "♮"}.get(of.at(1).lower(), of.at(1))


def _formula(_: Arguments) -> str:
    return FORMULA


# --- tables -------------------------------------------------------------------------------------------


def _table(*rows: tuple[str, Renderer]) -> dict[str, Renderer]:
    return {name.strip(): render for names, render in rows for name in names.replace("\n", "|").split("|")}


_SHIPS = listed(
    """USS HMS HMAS HMCS HMNZS HMSAS HMIS INS SS RMS MS MV SMS USCGC USAT USNS USAHS USRC RFA ORP HNLMS HDMS HNoMS HSwMS
    TSS CSS JDS RV GTS ROKS BAP ARA SAS PNS BRP KRI TCG"""
)

TEMPLATES: Mapping[str, Renderer] = _table(
    (
        """nowrap|nobr|nobreak|no wrap|avoid wrap|small|smaller|big|bigger|larger|large|huge|midsize|center|nobold
        noitalic|normal|nonbold|text|em|strong|bold|italic|bolditalic|i|b|u|underline|s|strikethrough|sc|smallcaps
        smallcaps all|caps|abbr|abbrv|tooltip|hover title|vanchor|visible anchor|mono|code|tt|kbd|var|samp
        mvar|tq|unicode|iast|iso 15919|pie|nastaliq|polytonic|nq|hebrew|arabic|cyrl|unichar|chem2|ce|dfn
        proper name|no italic|noitalics|bdi|start-date|end-date|ruby
        rtl|ltr|button|delimitnum""",
        _argument(1, "text"),
    ),
    ("citation needed span|cn span|fact span|clarify span|text span|which span|better source needed span|failed "
     "verification span|dubious span|attribution needed span|vague span|needs update span", _argument(1, "text")),
    ("lang|rtl-lang|color|colour|font color|font colour|fontcolor|langr", _argument(2, "text")),
    ("transl|transliteration|translit|resize|font size|fontsize|script|tlit", _last),
    ("quote|bquote|blockquote|block quote|quotation|cquote|poemquote|poem quote|verse translation", _quotation),
    ("convert", _convert),
    ("cvt", _convert_abbreviated),
    ("""birth date|birth date and age|birth-date|birth-date and age|death date|death date and age|death-date|bda|dda
     death-date and age|start date|start date and age|end date|end date and age|film date|dob|birth year and age
     launch date and age|release date|released|date|dts|dtsh|game release date""", _dated),
    ("oldstyledate|oldstyledatedy|oldstyledateny", _old_style_date),
    ("as of|asof", _as_of),
    ("circa|c.|ca.|ca", _circa),
    ("reign|r.", _span_of("r. ")),
    ("floruit|fl.|fl", _span_of("fl. ")),
    ("b.|born", _span_of("b. ")),
    ("d.|died", _span_of("d. ")),
    ("frac|fraction|sfrac|frac2|fracn|sfracn", _fraction),
    ("formatnum|nts|ntsh|number|num|number table sorting|format price|commas", lambda of: _number(of.at(1))),
    ("val", _val),
    ("chem|chemical formula", _chemical),
    ("sup|superscript", _wrapped("<sup>", "</sup>")),
    ("sub|subscript", _wrapped("<sub>", "</sub>")),
    ("pow", _power),
    ("e|x10^|e-sp|esp", _raised),
    ("sic", _sic),
    ("gaps|not a typo|typo|as written|linktext", _joined("")),
    ("keypress|key press|key", _joined(" + ")),
    ("bibleref|bibleref2|bibleverse|quran-usc|sura", _joined(" ")),
    ("railgauge|rail gauge|track gauge|gauge", lambda of: re.sub(r"(?<=\d)(?=[a-z])", " ", of.at(1))),
    ("angbr|angle bracket", _wrapped("⟨", "⟩")),
    ("height", _height),
    ("nihongo|nihongo3|nihongo2|nihongo foot|nihongo krt", _nihongo),
    ("zh", _chinese),
    ("langx", lambda of: _with_language(of.at(1).lower(), of, 2)),
    ("ill|illm|interlanguage link|interlanguage link multi", _interlanguage_link),
    ("flag|flagcountry|flagu|flag+link|flag+country|noflag|country", _country),
    ("sclass|sclass2|sclass-|ship class", _ship_class),
    ("ship", lambda of: _ship_link(of.at(1), of.at(2), of.at(3), of.at(4))),
    *((prefix.lower(), _ship(prefix)) for prefix in _SHIPS),
    ("music", _note),
    ("math|tmath|bigmath|numblk|equation box 1|bra-ket|ket|bra", _formula),
    ("us$|usd", _wrapped("US$")),
    ("£|gbp|pound sterling", _wrapped("£")),
    ("€|eur|euro", _wrapped("€")),
    ("¥|jpy|yen|cny|rmb", _wrapped("¥")),
    ("₹|inr|indian rupee", _wrapped("₹")),
    ("a$|aud", _wrapped("A$")),
    ("c$|cad|can$", _wrapped("C$")),
)  # fmt: skip
"""Renderer of each template that contains text, by lower-case name."""

WORDS: Mapping[str, str] = {
    name: word
    for names, word in (
        ("ndash|en dash|–|nsndns", "–"),
        ("mdash|em dash|—|mdashb|emdash", "—"),
        ("snd|spaced ndash|spaced en dash|snds|dash|spnd|spaced endash|spaced en dash space|ndashb", " – "),
        ("spd|spaced mdash|spaced em dash", " — "),
        ("nbsp|nbs|space|spaces|thinsp|thin space|hair space|hsp|nnbsp|pad|0ws|figure space|em space|spc", " "),
        ("zwsp|wbr|shy|zwj|zwnj|nowrap begin|nowrap end|nowrapbegin|nowrapend|zero width joiner|-", ""),
        ("'|'-|`|apostrophe|'/", "'"),
        ("'s|'s-|apostrophe s", "'s"),
        ('"|"-|quotation mark', '"'),
        ("'\"|' \"|'-\"", "'\""),
        ('"\'|" \'|-"', "\"'"),
        ("·|dot|middot|bull|bullet|•|*", " · "),
        ("!", "|"),
        ("pipe|vert", "|"),
        ("=|equals", "="),
        ("hyphen", "-"),
        ("minus|−", "−"),
        ("plusminus|±", "±"),
        ("times|×", "×"),
        ("ellipsis|...|…", "..."),
        ("deg|degree", "°"),
        ("okina|ʻokina|'okina", "ʻ"),
        ("pb|paragraph break|parabr|paragraph|paragraphs|br|break|crlf|-?", BREAK),
        ("number sign|hash-tag", "#"),
    )
    for name in names.split("|")
}
"""Templates that stand for characters, by lower-case name."""

FUNCTIONS: Mapping[str, Callable[[str], str]] = {
    "formatnum": _number,
    "lc": str.lower,
    "uc": str.upper,
    "lcfirst": lambda text: text[:1].lower() + text[1:],
    "ucfirst": lambda text: text[:1].upper() + text[1:],
}
