"""Reading a prompt without a linker: annotations drawn from the model's own posterior.

A particle filter over the words leaves mention histories z_<t with weights that approximate p(z_<t | x_<t). The next
word after them is an estimate of p(x_t | x_<t), which gets better with more particles.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from kglm.answer.reading import Reading, Span, encode, read
from kglm.linking.joint import marginal_links
from kglm.linking.linker import LinkedName
from kglm.linking.name_index import NameIndex
from kglm.marginal.candidates import prepare_text
from kglm.marginal.particle import ParticleConfig, particle_filter
from kglm.model.histories import CONTINUE, FIRST
from kglm.model.kglm import Kglm
from kglm.model.text import Components
from kglm.text.document import START, Document


def read_sampled(
    components: Components, model: Kglm, words: Sequence[str], names: NameIndex, config: ParticleConfig, seed: int = 0
) -> tuple[Reading, list[LinkedName]]:
    """Read words (without `@@START@@`); return the state after them and the mentions with their posteriors."""
    if not words:
        return read(components, model, words), []
    surface = (START, *words)
    prepared = prepare_text(components, model, Document("prompt", list(surface), []), names)
    found = particle_filter(prepared, config, seed)
    share_S = np.exp(found.log_w_S - np.logaddexp.reduce(found.log_w_S))
    groups: dict[bytes, list[int]] = {}
    for s in np.flatnonzero(share_S).tolist():
        groups.setdefault(found.histories.key(s), []).append(s)
    histories = found.histories.select(np.array([group[0] for group in groups.values()]))
    weight_S = np.array([share_S[group].sum() for group in groups.values()])
    h_D, state = encode(model, components.vocabulary.encode(surface))
    annotations = [_spans(path) for path in found.paths()]
    chosen = tuple(
        [Span(start + 1, end + 1, node) for start, end, node in annotations[each[0]]] for each in groups.values()
    )
    reading = Reading(components, model, surface, state, h_D, histories, weight_S / weight_S.sum(), chosen)
    return reading, marginal_links(zip(share_S.tolist(), annotations, strict=True))


def _spans(steps: Iterable[tuple[int, int]]) -> list[Span]:
    """The mentions of a sequence of steps."""
    spans: list[Span] = []
    for t, (column, node) in enumerate(steps):
        if column == CONTINUE:
            spans[-1] = spans[-1]._replace(end=t + 1)
        elif column == FIRST:
            spans.append(Span(t, t + 1, node))
    return spans
