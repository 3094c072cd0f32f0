"""Valid inputs of every reader, which the fuzzer mutates."""

from __future__ import annotations

import json
import pickle

NESTED = {
    "title": "A", "tokens": [["@@START@@"], ["Super", "Mario", "."], ["It", "is", "fun", "."]],
    "annotations": [{"source": "WIKI", "id": "Q1", "relation": ["@@NEW@@"], "parent_id": ["Q1"], "span": [1, 3]}],
}  # fmt: skip
DOCUMENT = {
    "title": "B", "tokens": ["@@START@@", "Barack", "Obama", "was", "born", "on", "August", "4", ",", "1961",
    "@@END@@"],
    "annotations": [
        {"source": "WIKI", "id": "Q76", "relation": ["@@NEW@@"], "parent_id": ["Q76"], "span": [1, 3]},
        {"source": "KG", "id": "T::11::+1961-08-04T00:00:00Z", "relation": ["P569"], "parent_id": ["Q76"],
        "span": [6, 10]},
    ],
    "extra": {"a": [1, None]},
}  # fmt: skip
PROMPT = {
    "prefix": ["@@START@@", "Barack", "Obama", "was", "born", "on"], "entity_indices": [1, 3], "entity_id": "Q76",
    "expected_tail": '"1961-08-04"', "shortlist": ["Q76", "Q142"], "nel": ["Q76"], "relation": "birthdate",
}  # fmt: skip


def as_lines(*records: object) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


WIKITEXT = b"""{{Infobox person|name=Barack Obama|birth_date={{birth date|1961|8|4}}}}
'''Barack Obama''' is an [[United States|American]] [[politician]].<ref name="a">{{cite web|url=x}}</ref>
== Life ==
He was born in [[Honolulu]], {{convert|12|km|mi}} from [[Pearl Harbor]].
{| class="wikitable"
! a !! b
|-
| 1 || 2
|}
* one
<!-- comment --> <nowiki>[[x]]</nowiki> <math>x^2</math>
[[File:X.jpg|thumb|A [[link]]]] [[Category:People]]
"""
DUMP = b"""<mediawiki xml:lang="en"><siteinfo><namespaces><namespace key="0"/><namespace key="14">Category</namespace>
</namespaces></siteinfo><page><title>Barack Obama</title><ns>0</ns><id>1</id><revision><text xml:space="preserve">
'''Barack Obama''' is an [[United States|American]] {{convert|12|km}} politician.</text></revision></page>
<page><title>Obama</title><ns>0</ns><redirect title="Barack Obama"/><revision><text>#REDIRECT [[Barack Obama]]</text>
</revision></page></mediawiki>
"""
HTML = b"""<!DOCTYPE html><html><head><meta charset="utf-8"><title>Barack Obama - Wikipedia</title></head><body>
<h1 id="firstHeading">Barack Obama</h1><div class="mw-parser-output"><p><b>Barack Obama</b> is an <a href="/wiki/US"
title="United States">American</a> politician.<sup class="reference">[1]</sup></p><table><tr><td>1</td></tr></table>
<h2>Life</h2><ul><li>one</li></ul>
<p>He was born in <a href="./Honolulu">Honolulu</a> &amp; lives.</p></div></body></html>
"""
JSON_ARTICLES = as_lines(
    {"title": "Barack Obama", "text": "Barack Obama is American.", "links": [{"start": 16, "end": 24,
    "target": "Q30"}]},
    {"title": "B", "tokens": ["A", "b"], "annotations": []},
    {"name": "Obama", "article_body": {"html": "<p>Barack <a href='./X'>X</a></p>", "wikitext": "[[a]]"},
     "redirects": [{"name": "B. Obama", "url": "x"}], "namespace": {"identifier": 0},
     "main_entity": {"identifier": "Q76"}},
    {"title": "C", "html": "<p>x</p>"}, {"title": "D", "wikitext": "[[x]]"}, DOCUMENT,
)  # fmt: skip


FACTS = b"""Q76\tP569\tT::11::+1961-08-04T00:00:00Z
Q76\tP19\tQ18094\tpreferred\tP580 T::9::+1961-00-00T00:00:00Z P248 Q36578 P854 S::https://example.org/a
P2048\tdatatype\tquantity:metre
Q76\tlabel\tBarack Obama
Obama\tredirect to\tBarack Obama
Q76\tP2048\tV::1.87::Q11573
"""
WIKIDATA = as_lines(
    {"type": "item", "id": "Q76", "labels": {"en": {"language": "en", "value": "Obama"}},
    "aliases": {"en": [{"value": "B"}]},
     "descriptions": {"en": {"value": "x"}}, "sitelinks": {"enwiki": {"site": "enwiki", "title": "Barack Obama"}},
     "claims": {
        "P19": [{"id": "Q76$1", "rank": "normal", "mainsnak": {"snaktype": "value", "property": "P19", "datavalue":
            {"type": "wikibase-entityid", "value": {"entity-type": "item", "numeric-id": 18094, "id": "Q18094"}}},
            "qualifiers": {"P585": [{"snaktype": "value", "datavalue": {"type": "time", "value":
                {"time": "+1961-08-04T00:00:00Z", "precision": 11}}}],
                "P582": [{"snaktype": "somevalue"}]},
            "references": [{"snaks": {"P248": [{"snaktype": "value", "datavalue": {"type": "wikibase-entityid",
                "value": {"id": "Q36578"}}}], "P854": [{"snaktype": "value", "datavalue":
                {"type": "string", "value": "https://example.org/a"}}]}}]}],
        "P2048": [{"rank": "preferred", "mainsnak": {"snaktype": "value", "datavalue":
            {"type": "quantity", "value": {"amount": "+187", "unit": "http://www.wikidata.org/entity/Q174728"}}}}],
        "P1477": [{"rank": "normal", "mainsnak": {"snaktype": "value", "datavalue":
            {"type": "monolingualtext", "value": {"text": "Barack Hussein Obama", "language": "en"}}}}]}},
)  # fmt: skip
NTRIPLES = b"""<http://www.wikidata.org/entity/Q76> <http://www.wikidata.org/prop/direct/P19> <http://www.wikidata.org/entity/Q1> .
<http://www.wikidata.org/entity/Q76> <http://www.w3.org/2000/01/rdf-schema#label> "Barack Obama"@en .
<http://www.wikidata.org/entity/Q76> <http://www.wikidata.org/prop/direct/P569> "1961-08-04T00:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime> .
<http://www.wikidata.org/entity/Q76> <http://www.wikidata.org/prop/direct/P2048> "+1.87"^^<http://www.w3.org/2001/XMLSchema#decimal> .
"""  # noqa: E501
KGTK = b"""id\tnode1\tlabel\tnode2\trank
Q76-P19\tQ76\tP19\tQ18094\tnormal
Q76-label\tQ76\tlabel\t'Barack Obama'@en\t
Q76-P569\tQ76\tP569\t^1961-08-04T00:00:00Z/11\tpreferred
Q76-P2048\tQ76\tP2048\t+1.87Q11573\t
q1\tQ76-P19\tP580\t^1961-00-00T00:00:00Z/9\t
q2\tQ76-P19\tP248\tQ36578\t
q3\tQ76-P19\tP854\t"https://example.org/a"\t
"""
ENTITIES = as_lines(
    {"id": "Q76", "label": "Barack Obama", "aliases": ["Obama"], "title": "Barack Obama", "description": "x"},
    {
        "head": "Q76",
        "relation": "P569",
        "tail": "1961-08-04",
        "rank": "preferred",
        "qualifiers": {"P585": ["2001-01-01"], "P580": ["1961"], "P248": ["Q36578", "the register"]},
    },
    {"relation": "P2048", "label": "height", "datatype": "quantity:metre"},
    {"redirect": "Obama", "target": "Barack Obama"},
)
PICKLES = [pickle.dumps(value, protocol) for protocol in (0, 2, 4) for value in (
    {"Q76": [("P19", "Q18094"), ("R:P26", "Q13133"), ["P569", "T::11::+1961-08-04T00:00:00Z"]]},
    {"Q76": [("P19", "Q18094"), "Barack Obama", ["B.", "Obama"]], "Q1": ("a",)},
)]  # fmt: skip
