"""English function words: they make no name by themselves and do not distinguish contexts."""

from __future__ import annotations

from functools import lru_cache

_ENGLISH = """
a an the this that these those such same other another each every either neither both all any some no none few many
much more most less least several own one ones
i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his himself she her hers herself
it its itself they them their theirs themselves who whom whose which what whoever whatever
am is are was were be been being 's 're 'm do does did done doing has have had having 've 'd can could may might must
shall should will would 'll ca wo ought
and or but nor so yet if then else than as because while although though since unless until whether
of in on at by for with about against between among into through during before after above below to from up down out
off over under again further near within without upon onto toward towards across along around behind beside beyond
despite except inside outside per via
not n't never ever here there where when why how also just only very too quite rather still even now soon later
first last next once twice
"""
FUNCTION_WORDS = frozenset(_ENGLISH.split())


@lru_cache(1 << 16)
def is_content(word: str) -> bool:
    """True for a content word: it has a letter or digit and is not a function word."""
    return any(char.isalnum() for char in word) and word.casefold() not in FUNCTION_WORDS
