"""Which missing facts a text means, if a name may refer to several entities."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kglm.answer.next_word import MissingFact
from kglm.answer.pretrained.answers import SAME_NAME, SubwordDistribution
from kglm.heads.local import Link

FILM, REMAKE, DIRECTOR = 1, 2, 6


def distribution(p_known: float, p_missing: float, links: list[Link]) -> SubwordDistribution:
    """`FILM` has a director with this probability; that of `REMAKE` is missing with the other one."""
    facts = SimpleNamespace(p_F=np.array([p_known]), parent_F=np.array([FILM]), relation_F=np.array([DIRECTOR]))
    following: Any = SimpleNamespace(
        missing=[MissingFact(p_missing, REMAKE, DIRECTOR)],
        facts=facts,
        reading=SimpleNamespace(linked=SimpleNamespace(links=links)),
    )
    answers: Any = SimpleNamespace(start=SimpleNamespace(following=following))
    plausible: Any = SimpleNamespace(is_plausible=lambda parent, relation: True)
    return SubwordDistribution(answers, plausible)


@pytest.mark.parametrize(
    ("share", "spans", "count"),
    [
        (1.2 * SAME_NAME, [(3, 4), (3, 4)], 0),  # the film has the fact: it is meant
        (0.8 * SAME_NAME, [(3, 4), (3, 4)], 1),  # the film is too improbable
        (1.2 * SAME_NAME, [(3, 4), (6, 7)], 1),  # two names: the second one is asked about
        (1.1, [(3, 4), (6, 7)], 0),
    ],
)
def test_of_two_entities_of_a_name_the_one_with_the_fact_is_meant(
    share: float, spans: list[tuple[int, int]], count: int
) -> None:
    links = [Link(*spans[0], FILM, 0.4), Link(*spans[1], REMAKE, 0.6)]
    assert len(distribution(0.5 * share, 0.5, links).missing) == count
