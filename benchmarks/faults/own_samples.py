"""Valid files of one's own: tables, JSON, RDF, Neo4j's CSV, and tables of edits."""

from __future__ import annotations

from benchmarks.faults.samples import as_lines

WIDE = b"""name,employees,founded,headquarters,height (m),revenue,slogan
Orrery Works,312,1889,Veltheim,21.5,$3.2 million,"We build what turns, and nothing that stands still"
Harbour Mill,45,1902,Ostmark,9,"$250,000","Bread first, then ""heaven""
and a second line"
"""
WIDE_WITH_KEYS = b"\xef\xbb\xbfid;label;aliases;member of;share\r\nw1;Ada Lumen;A. Lumen;Orrery Guild;12.5 %\r\n" \
                 b"w2;Nora Feld;;Orrery Guild;7 %\r\n"  # fmt: skip
TRIPLES = b"""head,relation,tail,from,until,rank,source
Ada Lumen,employer,Orrery Works,1894,1931,preferred,the staff list
Ada Lumen,birth date,25/12/1871,,,,
Nora Feld,employer,Harbour Mill,1902,,,
Nora Feld,birth date,04/03/1880,,,,
"""
BARE_TRIPLES = b"""# staff
Ada Lumen\temployer\tOrrery Works
Ada Lumen\theight\t1.70 m
Nora Feld\temployer\tHarbour Mill
Nora Feld\temployer\tOrrery Works
"""
OBJECTS = as_lines(
    {"head": "Ada Lumen", "relation": "employer", "tail": "Orrery Works", "from": 1894, "rank": "preferred"},
    {"head": "Ada Lumen", "relation": "height", "tail": 1.7, "qualifiers": {"source": ["the register"]}},
    {"id": "w1", "name": "Orrery Works", "aliases": ["the Works"], "founded": 1889, "products": ["orrery", "lamp"],
     "description": "a maker of orreries", "director": {"value": "Ada Lumen", "from": 1901, "rank": "preferred"}},
    {"name": "Harbour Mill", "open": True, "revenue": "$250,000.50", "owner": None},
)  # fmt: skip
OBJECT_ARRAY = b"[" + OBJECTS.strip().replace(b"\n", b", ") + b"]"
TURTLE = b"""@prefix : <http://example.org/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
:Ada_Lumen rdfs:label "Ada Lumen"@en , "Ada Lumen"@de ; :employer :Orrery_Works ; :born "1871-12-25"^^xsd:date ;
  :height "1.70"^^xsd:decimal ; :motto "Turn, turn."@en ; a :Person ; :year "1894"^^xsd:gYear ; :age 53 .
:employer rdfs:label "employer" . _:b :knows :Ada_Lumen . :Orrery_Works :maker [ rdfs:label "Nora Feld" ] .
"""
TRIG = b"""@prefix : <http://example.org/> .
:staff { :Ada :employer :Works . :Works :founded "1889"^^<http://www.w3.org/2001/XMLSchema#gYear> }
"""
OWN_NTRIPLES = b"""<http://example.org/Ada> <http://example.org/employer> <http://example.org/Orrery_Works> .
<http://example.org/Ada> <http://www.w3.org/2000/01/rdf-schema#label> "Ada Lumen"@en .
<http://example.org/Ada> <http://example.org/born> "1871-12-25"^^<http://www.w3.org/2001/XMLSchema#date> .
"""
NQUADS = OWN_NTRIPLES.replace(b" .\n", b" <http://example.org/staff> .\n")
RDFXML = b"""<?xml version="1.0"?>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://example.org/"
 xmlns:rdfs="http://www.w3.org/2000/01/rdf-schema#">
<rdf:Description rdf:about="http://example.org/Ada"><rdfs:label xml:lang="en">Ada Lumen</rdfs:label>
<e:employer rdf:resource="http://example.org/Works"/>
<e:born rdf:datatype="http://www.w3.org/2001/XMLSchema#date">1871-12-25</e:born></rdf:Description></rdf:RDF>
"""
JSONLD = as_lines(
    {"@context": {"@vocab": "http://example.org/", "label": "http://www.w3.org/2000/01/rdf-schema#label",
                  "born": {"@id": "http://example.org/born", "@type": "http://www.w3.org/2001/XMLSchema#date"}},
     "@graph": [{"@id": "http://example.org/Ada", "label": {"@value": "Ada Lumen", "@language": "en"},
                 "born": "1871-12-25", "employer": {"@id": "http://example.org/Works"}, "height": 1.7}]},
)  # fmt: skip
NODES = b"""personId:ID(Person),name,born:int,height:float,:LABEL,nicknames:string[],met:date,home:point
p1,Ada Lumen,1871,1.70,Person;Maker,Ada;A. L.,1894-05-04,
p2,Nora Feld,1880,1.65,Person,,,
"""
RELATIONSHIPS = b""":START_ID(Person),since:int,:END_ID(Person),:TYPE
p1,1902,p2,KNOWS
p2,,p1,REPORTS_TO
"""
APOC = b"""_id,_labels,name,founded,_start,_end,_type,since
1,:Company,Orrery Works,1889,,,,
2,:Person,Ada Lumen,,,,,
,,,,2,1,WORKS_FOR,1894
"""
EDITS = b"""action,head,relation,tail
set,Harbour Mill,employees,47
add,Orrery Works,height,22 m
add,Orrery Works,supplier,Harbour Mill
remove,Harbour Mill,headquarters,Ostmark
"""
TYPED = (
    "height=quantity:m\n21.5\n21.5 m\n5 ft", "revenue=money:EUR:comma\n1.234,5\n$ 3 million", "born=date:dmy\n4.5.1871",
    "founded=year\n1889\n44 BC", "share=percent\n12.5 %", "slogan=text\nTurn, turn.", "maker=entity\nAda", "key=id\nw1",
    "pages=quantity:leaf:point\n1.234",
)  # fmt: skip
