"""The name that an answer gets: the most probable one under the entity's names as subwords.

The first subword decides among the names. A date or quantity is written in full, with its unit, as the graph has it.
"""

from __future__ import annotations

from kglm.heads.following import Following
from kglm.heads.names import Name
from kglm.heads.scoring import Running

CLOSE = 0.3
"""The label is used if its first subword is at least this probable, as a share of the most probable one."""


def answer_text(following: Following, node: int, running: Running | None = None) -> str:
    """The name of an entity after a text, or the whole name of the mention that the text ends with."""
    tables = following.reading.reader.tables
    graph = tables.graph
    if graph.are_literals([node])[0]:
        return graph.label(node)
    names = tables.names.of(node)
    if running is not None:
        length = len(running.prefix)
        names = tuple(name for name in names if len(name.ids) > length and name.ids[:length] == running.prefix)
        p_of = following.next_of(running)
        place = length
    else:
        p_of, place = following.first_subwords(node), 0
    best = _best(names, p_of, place)
    return graph.label(node) if best is None else tables.base.subwords.decode(best.ids).strip()


def _best(names: tuple[Name, ...], p_of: dict[int, float], place: int) -> Name | None:
    """The name of the best kind whose next subword is about as probable as any; the longest of equals."""
    if not names:
        return None
    least = CLOSE * max(p_of.values(), default=0.0)
    likely = [name for name in names if p_of.get(name.ids[place], 0.0) >= least] or list(names)
    return min(likely, key=lambda name: (name.kind, -p_of.get(name.ids[place], 0.0), -len(name.ids)))
