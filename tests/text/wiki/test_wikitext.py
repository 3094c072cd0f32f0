"""Wikitext: links, kept and removed markup, text of templates."""

from __future__ import annotations

import pytest

from kglm.text.article import Article, article_from
from kglm.text.marked import read_marks
from kglm.text.wiki.convert import converted
from kglm.text.wiki.wikitext import read_wikitext


def read(text: str, title: str = "Title", *, lists: bool = False) -> Article:
    article = article_from(title, read_marks(read_wikitext(text, title, lists=lists), title))
    assert article is not None
    return article


def tokens_of(text: str, *, lists: bool = False) -> str:
    """Tokens without the first and last marker, joined with blanks."""
    return " ".join(read(text, lists=lists).tokens[1:-1])


def links(text: str, title: str = "Title") -> list[tuple[str, str]]:
    article = read(text, title)
    return [(article.text(link), link.target) for link in article.links]


# --- links ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected", "found"),
    [
        ("A [[bus]].", "A bus .", [("bus", "Bus")]),
        ("Two [[bus]]es.", "Two buses .", [("buses", "Bus")]),
        ("A [[bus]]'s wheel, [[bus]]Stop", "A bus 's wheel , bus Stop", [("bus", "Bus"), ("bus", "Bus")]),
        ("An [[Ελλάδα|ελλ]]ηνικός and [[東京]]都", "An ελληνικός and 東京 都",
         [("ελληνικός", "Ελλάδα"), ("東京", "東京")]),
        ("A [[big bus|coach]].", "A coach .", [("coach", "Big_bus")]),
        ("A [[ big_bus#Red | red one ]].", "A red one .", [("red one", "Big_bus")]),
        ("A [[Bus (vehicle)|]] in [[Elm, Ohio|]].", "A Bus in Elm .", [("Bus", "Bus_(vehicle)"), ("Elm", "Elm,_Ohio")]),
        ("A [[Bus|''red'' '''bus''']].", "A red bus .", [("red bus", "Bus")]),
        ("A [[Bus|red\nbus]].", "A red bus .", [("red bus", "Bus")]),
        ("A [[bus|]]", "A bus", [("bus", "Bus")]),
        ("See [[#Red|red]] and [[#Red]].", "See red and # Red .", []),
        ("See [[Help:Bus|help]], [[:Category:Bus|all]], [[wikt:bus|word]], [[:fr:Bus|bus]].",
         "See help , all , word , bus .", []),
        ("Text. [[Category:Bus]] [[fr:Bus]] [[File:A.jpg|thumb|A [[bus]] of [http://a.b c] [[Elm]].]]", "Text .", []),
        ("A [[bus and [[coach]].", "A bus and coach .", [("coach", "Coach")]),
        ("A [[bus|big [[coach]] stop]].", "A big coach stop .", [("coach", "Coach")]),
        ("A [[[bus]]] and [[a<b|car]].", "A [ bus ] and car .", [("bus", "Bus")]),
        ("[[Yahoo! Inc.|Yahoo! It is]] big.", "Yahoo ! It is big .", [("Yahoo ! It is", "Yahoo!_Inc.")]),
        ("[[Denver]]-based U.S.-[[UK]] [[side-scrolling]]", "Denver -based U.S.- UK side - scrolling",
         [("Denver", "Denver"), ("UK", "UK"), ("side - scrolling", "Side-scrolling")]),
        ("{{nowrap|A [[big bus|bus]]}} {{lang|de|[[Bus]]se}}", "A bus Busse", [("bus", "Big_bus"), ("Busse", "Bus")]),
        ("A [http://a.b bus], [http://a.b], [//a.b c] at https://a.b/c?d=e.", "A bus , c at .", []),
    ],
)  # fmt: skip
def test_links_and_their_text(text: str, expected: str, found: list[tuple[str, str]]) -> None:
    assert tokens_of(text) == expected
    assert links(text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("'''Bo Li''' and '''Bo''' ran.", [("Bo Li", "Bo_Li_(man)")]),
        ("{{Infobox|'''x'''}}\"'''Bo Li'''\" and '''\"Bo\"''' ran.", [("Bo Li", "Bo_Li_(man)")]),
        ("'''\"Bo Li\"''' ran.", [("Bo Li", "Bo_Li_(man)")]),
        ("'''''Bo Li'' ran''' far.", [("Bo Li ran", "Bo_Li_(man)")]),
        ("The '''[[Elm]] man''' or '''Bo''' ran.", [("Elm", "Elm"), ("Bo", "Bo_Li_(man)")]),
        ("He ran.\n\n== Name ==\n'''Bo''' ran.", []),
        ("'''Bo ran.\nFar.", [("Bo ran .", "Bo_Li_(man)")]),
    ],
)
def test_first_bold_words_link_to_the_subject(text: str, found: list[tuple[str, str]]) -> None:
    assert links(text, "Bo Li (man)") == found


# --- removed -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # notes, comments, extensions
        ("A<ref>b [[c]]</ref> d<ref name=\"e\" /><ref name=f>{{cite|g}}</ref>", "A d"),
        ("A<ref>b, <ref>c</ref> d", "Ab , d"),
        ("A <!-- b --> c<!-- d\n\ne -->f\n<!-- g -->\nh", "A cf h"),
        ("A <nowiki>[[b]] ''c''</nowiki> <math>x^2</math>, <ce>H2O</ce>", "A [ [ b ] ] '' c '' <formula> , <formula>"),
        ("A {{math|''x''}} and {{mvar|y}}", "A <formula> and y"),
        ("<gallery>\nA.jpg|b\n</gallery>\nAb\n<poem>\nCd\nef\n</poem>\nGh", "Ab @@END@@ Cd ef @@END@@ Gh"),
        ("A <code>b</code> <syntaxhighlight lang=c>x();</syntaxhighlight>", "A b"),
        ("A __NOTOC__ b", "A b"),
        # tables
        ("A\n{| class=a\n|-\n| b || [[c]]\n{|\n| d\n|}\n|}\nE", "A @@END@@ E"),
        (":{|\n| b\n|}\nE", "E"),
        ("A\n{|\n| b\nc\n== D ==\nE", "A @@END@@ E"),
        ("A\n| b = c\n|-\n! d\n}}\nE", "A @@END@@ E"),
        ("A<table><tr><td>b<table><tr><td>c</table></table>D", "A @@END@@ D"),
        ("A <table> b", "A b"),
        # headings, lists, end sections
        ("A\n== B ==\nC\n=== [[D]] ===\nE", "A @@END@@ C @@END@@ E"),
        ("A:\n* b\n# c\n: d\n; e\n----\nF", "A : @@END@@ F"),
        ("A\n<ul><li>b<ul><li>c</ul></ul>\nD", "A @@END@@ D"),
        ("A\n== See also ==\nB\n=== C ===\nD\n== E ==\nF\n==References==\n{{reflist}}\nG", "A @@END@@ F"),
        ("A\n==''[[Notes]]''==\nB\n==External&nbsp;links ==\nC", "A"),
        # tags, entities, quotes
        ("A<br>b <span style=\"c\">d</span> <small>e</small> <foo>f</foo> < g", "A b d e f < g"),
        ("<div>A</div>b<p>c</p><blockquote>d</blockquote>", "A @@END@@ b @@END@@ c @@END@@ d"),
        ("A<span style=\"display: none\">b</span>c", "Ac"),
        ("km<sup>2</sup>, H<sub>2</sub>O, 1<sup>st</sup> x<sup>2</sup>", "km 2 , H 2 O , 1st x 2"),
        ("A&nbsp;b &amp; c&ndash;d &#x110000; &lt;ref&gt;", "A b & c – d � < ref >"),
        ("''A'''s b '''c''' ''d'' '''''e'''''", "A 's b c d e"),
        ("The l'''eau'' is", "The l'eau is"),
        ("A ''''b''' c ''''''d", "A ' b c 'd"),
        # not closed
        ("A {{box\n| b = c\nD [[e", "A @@END@@ D e"),
        ("A {{b|{{c}} d.\nE", "A E"),
        ("A }} b ]] c |} d {| e", "A b c d e"),
        ("A <ref>b.\nC </ref", "A b. C ref"),
        ("A <!-- b", "A"),
    ],
)  # fmt: skip
def test_removed_and_kept_markup(text: str, expected: str) -> None:
    assert tokens_of(text) == expected


def test_lists_are_kept_on_request() -> None:
    assert (
        tokens_of("A:\n* [[b]]\n** c\nD\n<ol><li>e</li></ol>", lists=True)
        == "A : @@END@@ b @@END@@ c @@END@@ D @@END@@ e"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Ann ({{IPA|x}}; born 1961) ran.", "Ann ( born 1961 ) ran ."),
        ("Ann ({{lang-fr|a}}; {{IPA|x}}) ran.", "Ann ( French : a ) ran ."),
        ("Ann ({{IPA|x}}) ran.", "Ann ran ."),
        ("Ann ( {{IPA|x}} , {{IPA|y}} ), ran.", "Ann , ran ."),
        ("Ann ({{IPA|x}} or {{IPA|y}}) ran.", "Ann ran ."),
        ("Ann (pronounced {{IPA|x}}; born 1961) ran.", "Ann ( born 1961 ) ran ."),
        ("Ann, pronounced {{IPA|x}}, ran.", "Ann , ran ."),
        ("Ann {{cn}}, {{cn}}, ran {{cn}}. {{cn}} Bo {{cn}} sat{{cn}}.", "Ann , ran . @@END@@ Bo sat ."),
        ("{{a}}, Ann (born 1961{{cn}}) ran.", "Ann ( born 1961 ) ran ."),
        ("Ann (({{IPA|x}})) ran ({{a}}", "Ann ran ("),
        ("[[Ann]]{{cn}} ({{IPA|x}}, [[Bo]]) ran.", "Ann ( Bo ) ran ."),
        ("Ann{{cn}} ran.", "Ann ran ."),
        ("A f(x) is (a, b).", "A f(x ) is ( a , b ) ."),
    ],
)
def test_punctuation_around_removed_templates_is_cleaned(text: str, expected: str) -> None:
    assert tokens_of(text) == expected


# --- templates -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{{lang|fr|mot}}", "mot"), ("{{lang-fr|mot}}", "French : mot"),
        ("{{langx|grc|λόγος}}", "Ancient Greek : λόγος"),
        ("{{lang-fr|mot|label=none}}", "mot"), ("{{lang-xyzzy|mot}}", "mot"), ("{{transl|ar|ALA|kitab}}", "kitab"),
        ("{{nihongo|Tea|茶|cha}}", "Tea ( 茶 , cha )"), ("{{zh|c=茶|p=chá}}", "Chinese : 茶 ; pinyin : chá"),
        ("{{script/Hebrew|א}}", "א"), ("{{abbr|CPU|processor}}", "CPU"), ("{{Nowrap|1=a=b}}", "a = b"),
        ("a{{snd}}b", "a – b"), ("a{{ndash}}b", "a – b"), ("a{{mdash}}b", "a — b"), ("Bo{{'}}s", "Bo 's"),
        ("{{'s}}", "'s"), ("a{{nbsp}}b", "a b"), ("a {{·}} b", "a · b"), ("a {{!}} b", "a | b"), ("a{{=}}b", "a = b"),
        ("{{frac|1|2}}", "1/2"), ("{{frac|3|1|2}}", "3 1/2"), ("{{sfrac|4}}", "1/4"),
        ("{{birth date|1961|8|4}}", "August 4 , 1961"), ("{{birth date and age|1961|08|04|df=yes}}", "4 August 1961"),
        ("{{death date and age|1990|1|2|1900|3|4}}", "January 2 , 1990"), ("{{start date|1990|5}}", "May 1990"),
        ("{{start date|1990}}", "1990"), ("{{OldStyleDate|2 May|1905|20 April}}", "2 May 1905"),
        ("{{as of|2015|6}}", "As of June 2015"), ("{{as of|2015|lc=y}}", "as of 2015"),
        ("{{circa|1850}}", "c. 1850"), ("{{c.|1850|1860}}", "c. 1850 – c. 1860"),
        ("{{reign|1603|1625}}", "r. 1603–1625"),
        ("{{formatnum:12345.6}}", "12,345.6"), ("{{uc:abc}}", "ABC"), ("{{val|1234|5|u=km}}", "1,234 ± 5 km"),
        ("{{chem|H|2|O}}", "H 2 O"), ("10{{e|6}}", "10 × 10 6"), ("{{sic|teh}}", "teh [ sic ]"),
        ("{{gaps|12|345}}", "12345"), ("{{key press|Ctrl|C}}", "Ctrl + C"),
        ("{{US$|5}}", "US$ 5"), ("B{{music|flat}}", "B ♭"), ("{{height|ft=6|in=1}}", "6 ft 1 in"),
        ("{{citation needed span|text=so it is|date=May}}", "so it is"), ("{{PAGENAME}}", "Title"),
        ("{{quote|To be!|Bo}}", "To be !"), ("a {{pb}} b", "a @@END@@ b"), ("{{ small | {{nowrap| a }} }}", "a"),
        ("a {{sfn|Bo|1990}} {{IPAc-en|a}} {{Infobox x|y=z}} {{#if:a|b}} {{#tag:ref|b}} {{DEFAULTSORT:B}} b", "a b"),
        ("a {{{1|b}}} c", "a b c"), ("{{template:nowrap|a}}", "a"), ("{{No_Wrap|a}}", "a"),
        ("{{convert|27|km|mi}}", "27 kilometres ( 17 mi )"), ("{{cvt|27|km|mi}}", "27 km ( 17 mi )"),
    ],
)  # fmt: skip
def test_text_of_templates(template: str, expected: str) -> None:
    assert tokens_of(template + " .").removesuffix(" .").removesuffix(" @@END@@") == expected


def test_templates_that_are_rendered_as_links() -> None:
    assert links("The {{USS|Ann|CV-6|2}}, {{HMS|Bo|51}}, {{ship|SS|Cy||2}}.") == [
        ("USS Ann", "USS_Ann_(CV-6)"),
        ("HMS Bo ( 51 )", "HMS_Bo_(51)"),
        ("SS Cy", "SS_Cy"),
    ]
    assert links("{{sclass|Ann|cruiser}} {{ill|Bo|de|lt=B}} {{flag|Chad}} {{flagicon|Chad}}") == [
        ("Ann - class cruiser", "Ann-class_cruiser"),
        ("B", "Bo"),
        ("Chad", "Chad"),
    ]


@pytest.mark.parametrize(
    ("amount", "named", "expected"),
    [
        # what the linked corpus says
        ("26.02|mi|km", {"abbr": "on"}, "26.02 mi (41.88 km)"), ("16|km2|sqmi", {}, "16 square kilometres (6.2 sq mi)"),
        ("575.83|km2|sqmi", {}, "575.83 square kilometres (222.33 sq mi)"), ("1|ha|acre", {}, "1 hectare (2.5 acres)"),
        ("120|ft|m", {}, "120 feet (37 m)"), ("9|in|mm", {}, "9 inches (230 mm)"),
        ("1/2|in|mm", {}, "1/2 inch (13 mm)"),
        ("1000|m|yd", {"abbr": "on"}, "1,000 m (1,100 yd)"),
        ("45.9|sqmi|km2", {"abbr": "on"}, "45.9 sq mi (119 km 2)"),
        # options
        ("5|to|10|ft|m", {"abbr": "on"}, "5 to 10 ft (1.5 to 3.0 m)"), ("6|ft|2|in|m", {}, "6 feet 2 inches (1.88 m)"),
        ("21|C|F", {}, "21 °C (70 °F)"), ("-40|C", {}, "−40 °C (−40 °F)"),
        ("300|mi|km", {"adj": "on"}, "300-mile (480 km)"),
        ("2000|-|3000|m|ft", {"sp": "us"}, "2,000–3,000 meters (6,600–9,800 ft)"),
        ("1|mi|km|2", {}, "1 mile (1.61 km)"),
        ("27|km|mi", {"disp": "or"}, "27 kilometres or 17 miles"), ("200|ft|m", {"disp": "out"}, "61 m"),
        ("12|kn|km/h mph", {}, "12 knots (22 km/h; 14 mph)"), ("27|km|mi", {"sigfig": "4"}, "27 kilometres (16.78 mi)"),
        # nonsense
        ("12|foo|bar", {}, "12 foo"), ("many|km", {}, "many km"), ("1e400|km", {}, "1e400 km"), ("5", {}, "5"),
        ("", {}, ""),
        ("1/0|km", {}, "1/0 km"), ("0|km|mi", {}, "0 kilometres (0 mi)"), ("5|km|lb", {}, "5 kilometres (3.1 mi)"),
    ],
)  # fmt: skip
def test_text_of_convert(amount: str, named: dict[str, str], expected: str) -> None:
    assert converted(amount.split("|"), named) == expected
