"""Headings of the sections at the end of articles: sources, notes and links, which are not prose."""

from __future__ import annotations

from kglm.text.wiki.titles import listed

END_SECTIONS = listed(
    """see also|references|external links|external link|notes|note|further reading|bibliography|footnotes
    sources|citations|notes and references|references and notes|works cited|literature|general references|reading
    cited works|cited sources|general sources|literature cited|explanatory notes|notes and citations|links
    citations and notes|footnotes and references|references and further reading|notes and sources
    sources and further reading|sources and references|primary sources|secondary sources|print sources|web sources
    references and sources|selected bibliography|external sources|related reading|additional reading
    online resources|external resources|references and external links|bibliography and further reading|endnotes
    additional sources|other sources|related links|references cited|web links|suggested reading|inline citations
    further reading and external links|explanatory footnotes|suggestions for further reading|general bibliography
    notes, citations, and references|notes, references, and sources|citations and references""",
    blanks=True,
)


def is_end_section(heading: str) -> bool:
    """True if a heading opens one of these sections.

    >>> is_end_section(" See  also"), is_end_section("Early life")
    (True, False)
    """
    return " ".join(heading.split()).casefold() in END_SECTIONS
