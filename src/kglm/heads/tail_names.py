"""Which of a few values the base would name itself, at the end of a prompt.

    score(e) gains  ω max(log p_B(label of e | text) − max_e' log p_B(label of e' | text), −FAR)

The base has read which capital or spouse is the present one. Where ranks or times of the graph tell one value from
another, they decide, and the base is not asked. p_B is that of the whole label, and of long labels that of their first
subwords. By itself, it never gives a value nine tenths of the probability.

The labels are read in one pass as a tree, whose branches do not see each other. This is done for relations that the
text probably asks for, at the end of a prompt, and not at positions inside of texts: neither in training nor in the
probability of a text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from kglm.heads.growing import BaseStates
from kglm.heads.passage import Passage
from kglm.heads.tails import TailInputs
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.tail_features import STATED

WEIGHT = 0.3
"""ω, chosen on the development half of `benchmarks/several_values.py`."""
FAR = 6.0
"""Nats by which one label can be less probable than the best one: ω FAR < log 9."""
MOST_TAILS = 12
"""Tails of a relation up to which their labels are read."""
MOST_SUBWORDS = 20
"""Subwords that are read for the labels of a prompt."""
LEAST_READ = 0.1
"""Probability of a relation, and of words before it, from which the labels of its tails are read."""
OPENING = frozenset("([{\"'“‘-–—/")
"""Marks that no blank follows."""


class Branches(NamedTuple):
    """Beginnings of labels as a tree: the subwords, and the place of the one before each (−1 at the text)."""

    id_N: list[int]
    before_N: list[int]
    place_of: dict[tuple[int, ...], int]

    @classmethod
    def of(cls, labels: Sequence[Sequence[int]]) -> Branches:
        """The tree of all labels without their last subwords, after which nothing is asked for."""
        tree = cls([], [], {(): -1})
        for label in labels:
            for n in range(1, len(label)):
                prefix = tuple(label[:n])
                if prefix not in tree.place_of:
                    tree.place_of[prefix] = len(tree.id_N)
                    tree.before_N.append(tree.place_of[prefix[:-1]])
                    tree.id_N.append(prefix[-1])
        return tree


class LabelReader:
    """Reads labels behind one text."""

    def __init__(self, states: BaseStates, passage: Passage, log_p_V: Tensor, graph: KnowledgeGraph) -> None:
        """`log_p_V` is log p_B of the next subword."""
        self._states, self._passage, self._log_p_V, self._graph = states, passage, log_p_V, graph

    def reads(self, inputs: TailInputs, at: Tensor) -> bool:
        """True if the labels of some tails are read: of a few entities that ranks and times do not tell apart.

        What dates and quantities are, the base does not know.
        """
        told_NQ = inputs.fact_YQ[at, : len(STATED)]
        if not 1 < len(told_NQ) <= MOST_TAILS or bool((told_NQ != told_NQ[0]).any()):
            return False
        return not self._graph.are_literals(inputs.tail_Y[at].tolist()).any()

    def gains(self, tails: Sequence[int]) -> Tensor:
        """What the scores of some tails gain."""
        log_p = self.log_probs([self._label(tail) for tail in tails])
        return WEIGHT * (log_p - log_p.max()).clamp(min=-FAR)

    def _label(self, node: int) -> str:
        last = self._passage.text[-1:]
        blank = "" if not last or last.isspace() or last in OPENING else " "
        return f"{blank}{self._graph.label(node)}"

    def log_probs(self, labels: Sequence[str]) -> Tensor:
        """log p_B(label | text), of labels as written behind the text; of long ones, of their first subwords."""
        encoded = self._states.base.subwords.encode_many(labels)
        length = max(map(len, encoded), default=0)
        most = min(MOST_SUBWORDS, self._states.room(self._passage.ids))
        while len((tree := Branches.of([ids[:length] for ids in encoded])).id_N) > most:
            length -= 1
        if tree.id_N:
            last_ND = self._states.branches(self._passage.ids, tree.id_N, tree.before_N)
            after_NV = self._states.base.model.logits(last_ND).log_softmax(-1)
            log_p_MV = torch.cat([after_NV, self._log_p_V[None]])  # place −1 is the text itself
        else:
            log_p_MV = self._log_p_V[None]
        found = torch.zeros(len(encoded))
        for k, ids in enumerate(encoded):
            places = [tree.place_of[tuple(ids[:n])] for n in range(min(len(ids), length))]
            found[k] = log_p_MV[places, ids[:length]].sum()
        return found
