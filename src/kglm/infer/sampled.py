"""Reading a prompt of which nobody says who is mentioned: annotations drawn from the model's own posterior.

A particle filter over the words read so far leaves mention histories z_<t with weights that stand for p(z_<t | x_<t).
The next word after them is an estimate of p(x_t | x_<t), which comes closer with more particles.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kglm.annotate.linker import Candidate, Linked
from kglm.annotate.names import NameIndex
from kglm.infer.candidates import named_scene
from kglm.infer.histories import CONTINUE, FIRST
from kglm.infer.particle import Filtered, ParticleConfig, particle_filter
from kglm.infer.reading import Reading, encode, read
from kglm.infer.scene import Parts
from kglm.infer.tables import Floats
from kglm.model.kglm import Kglm
from kglm.text.document import START, Document


def read_sampled(
    parts: Parts, model: Kglm, words: Sequence[str], names: NameIndex, config: ParticleConfig, seed: int = 0
) -> tuple[Reading, list[Linked]]:
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
    return reading, _linked(found, share_K)


def _linked(found: Filtered, share_K: Floats) -> list[Linked]:
    """The spans that were drawn, each with its entities; what is missing to 1 is the share of other spans, or none."""
    mass: dict[tuple[int, int], dict[int, float]] = {}
    for share, steps in zip(share_K.tolist(), found.paths(), strict=True):
        spans: list[list[int]] = []
        for t, (column, node) in enumerate(steps):
            if column == CONTINUE:
                spans[-1][1] = t + 1
            elif column == FIRST:
                spans.append([t, t + 1, node])
        for start, end, node in spans:
            nodes = mass.setdefault((start, end), {})
            nodes[node] = nodes.get(node, 0.0) + share
    return [
        Linked(*span, tuple(Candidate(node, p) for node, p in sorted(nodes.items(), key=lambda item: -item[1])))
        for span, nodes in sorted(mass.items())
    ]
