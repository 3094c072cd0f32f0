"""Reading a prompt of which nobody says who is mentioned: annotations drawn from the model's own posterior.

A particle filter over the words read so far leaves mention histories z_<t with weights that stand for p(z_<t | x_<t).
The next word after them is an estimate of p(x_t | x_<t), which comes closer with more particles.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from kglm.answer.reading import Reading, Span, encode, read
from kglm.linking.linker import LinkedName, marginal_links
from kglm.linking.name_index import NameIndex
from kglm.marginal.candidates import named_scene
from kglm.marginal.particle import ParticleConfig, particle_filter
from kglm.marginal.prepared_text import Parts
from kglm.model.histories import CONTINUE, FIRST
from kglm.model.kglm import Kglm
from kglm.text.document import START, Document


def read_sampled(
    parts: Parts, model: Kglm, words: Sequence[str], names: NameIndex, config: ParticleConfig, seed: int = 0
) -> tuple[Reading, list[LinkedName]]:
    """Read words (without `@@START@@`), and say who was mentioned where in how large a share of the posterior."""
    if not words:
        return read(parts, model, words), []
    surface = (START, *words)
    scene = named_scene(parts, model, Document("prompt", list(surface), []), names)
    found = particle_filter(scene, config, seed)
    share_K = np.exp(found.log_w_K - np.logaddexp.reduce(found.log_w_K))
    groups: dict[bytes, list[int]] = {}
    for k in np.flatnonzero(share_K).tolist():
        groups.setdefault(found.histories.key(k), []).append(k)
    histories = found.histories.select(np.array([group[0] for group in groups.values()]))
    weight_K = np.array([share_K[group].sum() for group in groups.values()])
    h_D, state = encode(model, parts.vocabulary.encode(surface))
    reading = Reading(parts, model, surface, state, h_D, histories, weight_K / weight_K.sum())
    return reading, marginal_links(zip(share_K.tolist(), map(_spans, found.paths()), strict=True))


def _spans(steps: Iterable[tuple[int, int]]) -> list[Span]:
    """The mentions of a path."""
    spans: list[Span] = []
    for t, (column, node) in enumerate(steps):
        if column == CONTINUE:
            spans[-1] = spans[-1]._replace(end=t + 1)
        elif column == FIRST:
            spans.append(Span(t, t + 1, node))
    return spans
