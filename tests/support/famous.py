"""A small graph of well-known people, countries, books and games, to write about."""

from __future__ import annotations

import re

KM2 = "http://www.wikidata.org/entity/Q712226"
NAMES: dict[str, tuple[str, ...]] = {
    "Q76": ("Barack Obama", "Obama"),
    "Q13133": ("Michelle Obama",),
    "Q3335": ("George Orwell", "Orwell"),
    "Q30": ("United States", "USA"),
    "Q142": ("France",),
    "Q145": ("United Kingdom",),
    "Q61": ("Washington, D.C.",),
    "Q90": ("Paris",),
    "Q84": ("London",),
    "Q18094": ("Honolulu",),
    "Q782": ("Hawaii",),
    "Q46": ("Europe",),
    "Q4917": ("United States dollar",),
    "Q4916": ("euro",),
    "Q150": ("French",),
    "Q1860": ("English",),
    "Q208460": ("Nineteen Eighty-Four", "1984"),
    "Q1396889": ("Animal Farm",),
    "Q647249": ("Super Mario Land",),
    "Q8093": ("Nintendo",),
    "Q186437": ("Game Boy",),
    "Q13371": ("Harvard University",),
    "Q35637": ("Nobel Peace Prize",),
    "Q29468": ("Democratic Party",),
    "Q1299": ("The Beatles",),
    "Q1203": ("John Lennon", "Lennon"),
    "Q5": ("human",),
    "Q6581097": ("male",),
    "Q6581072": ("female",),
    "Q6256": ("country",),
    "Q515": ("city",),
    "Q35657": ("state",),
    "Q5107": ("continent",),
    "Q8142": ("currency",),
    "Q34770": ("language",),
    "Q8261": ("novel",),
    "Q7889": ("video game",),
    "Q210167": ("video game company",),
    "Q941818": ("handheld game console",),
    "Q3918": ("university",),
    "Q618779": ("award",),
    "Q7278": ("political party",),
    "Q5741069": ("rock band",),
    "Q82955": ("politician",),
    "Q40348": ("lawyer",),
    "Q36180": ("writer",),
    "Q177220": ("singer",),
    "Q712226": ("square kilometre", "km²"),
    "P31": ("instance of",),
    "P36": ("capital",),
    "P569": ("date of birth",),
    "P19": ("place of birth",),
    "P26": ("spouse",),
    "P50": ("author",),
}
_FACTS = f"""
Q76 P31 Q5 | Q76 P21 Q6581097 | Q76 P569 1961-08-04 | Q76 P19 Q18094 | Q76 P26 Q13133 | Q76 P106 Q82955
Q76 P106 Q40348 | Q76 P27 Q30 | Q76 P69 Q13371 | Q76 P166 Q35637 | Q76 P102 Q29468 | Q13133 P31 Q5
Q13133 P21 Q6581072 | Q13133 P569 1964-01-17 | Q13133 P26 Q76 | Q13133 P106 Q40348 | Q13133 P27 Q30
Q13133 P69 Q13371 | Q3335 P31 Q5 | Q3335 P21 Q6581097 | Q3335 P569 1903-06-25 | Q3335 P570 1950-01-21
Q3335 P20 Q84 | Q3335 P106 Q36180 | Q3335 P27 Q145 | Q3335 P800 Q208460 | Q208460 P31 Q8261 | Q208460 P50 Q3335
Q208460 P577 1949-06-08 | Q208460 P407 Q1860 | Q208460 P495 Q145 | Q1396889 P31 Q8261 | Q1396889 P50 Q3335
Q1396889 P577 1945-08-17 | Q1396889 P407 Q1860 | Q30 P31 Q6256 | Q30 P36 Q61 | Q30 P38 Q4917 | Q30 P37 Q1860
Q30 P1082 V::331449281.0000::1 | Q30 P2046 V::9826675.0000::{KM2} | Q142 P31 Q6256 | Q142 P36 Q90 | Q142 P30 Q46
Q142 P38 Q4916 | Q142 P37 Q150 | Q142 P1082 V::68000000.0000::1 | Q145 P31 Q6256 | Q145 P36 Q84 | Q145 P30 Q46
Q145 P37 Q1860 | Q61 P31 Q515 | Q61 P17 Q30 | Q61 P1082 V::689545.0000::1 | Q90 P31 Q515 | Q90 P17 Q142
Q90 P1082 V::2145906.0000::1 | Q84 P31 Q515 | Q84 P17 Q145 | Q18094 P31 Q515 | Q18094 P131 Q782 | Q18094 P17 Q30
Q782 P31 Q35657 | Q782 P17 Q30 | Q782 P36 Q18094 | Q46 P31 Q5107 | Q4917 P31 Q8142 | Q4916 P31 Q8142
Q150 P31 Q34770 | Q1860 P31 Q34770 | Q647249 P31 Q7889 | Q647249 P577 1989-04-21 | Q647249 P123 Q8093
Q647249 P178 Q8093 | Q647249 P400 Q186437 | Q8093 P31 Q210167 | Q8093 P571 1889-09-23 | Q186437 P31 Q941818
Q186437 P176 Q8093 | Q186437 P577 1989-04-21 | Q13371 P31 Q3918 | Q13371 P17 Q30 | Q13371 P571 1636-09-08
Q35637 P31 Q618779 | Q29468 P31 Q7278 | Q29468 P17 Q30 | Q1299 P31 Q5741069 | Q1299 P495 Q145 | Q1299 P527 Q1203
Q1203 P31 Q5 | Q1203 P21 Q6581097 | Q1203 P106 Q177220 | Q1203 P569 1940-10-09 | Q1203 P570 1980-12-08
"""


def _fact(text: str) -> tuple[str, str, str]:
    head, relation, tail = text.split()
    return head, relation, f"T::11::+{tail}T00:00:00Z" if tail[0].isdigit() else tail


FACTS = [_fact(text) for text in re.split(r"[|\n]", _FACTS) if text.strip()]
