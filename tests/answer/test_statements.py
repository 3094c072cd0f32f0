"""A reason shows when its fact holds and where it comes from; the text decides which of several values is meant."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from kglm.answer.completion import Reason
from kglm.answer.next_word import Derivation
from kglm.kg.graph import KnowledgeGraph
from kglm.model.local_graph import EdgeGroups
from kglm.model.tail_facts import START_WEIGHTS
from kglm.model.types import Type
from support.toys import DAY, STATEMENTS, Toy, make_toy
from support.worlds import make_store


def capital(tmp_path: Path, **data: object) -> Reason:
    names = {"Q142": ("France",), "Q90": ("Paris",), "Q9": ("The World Factbook",), "P36": ("capital",)}
    path = make_store(tmp_path, [("Q142", "P36", "Q91")], names, [(("Q142", "P36", "Q90"), data)])
    with KnowledgeGraph.open(path) as graph:
        relation = graph.find_relation("P36")
        assert relation is not None
        derivation = Derivation(0.5, Type.RELATED, graph.number("Q90"), graph.number("Q142"), relation, True)
        return Reason.of(graph, derivation)


def test_a_reason_with_times_and_a_source(tmp_path: Path) -> None:
    times = {"P580": [DAY], "P582": ["T::9::+1990-00-00T00:00:00Z"], "P248": ["Q9"], "P854": ["https://example.org"]}
    reason = capital(tmp_path, qualifiers=times)
    assert str(reason) == (
        "related France —capital→ Paris (1989–1990), copied; source: The World Factbook, https://example.org"
    )
    found = reason.to_json()
    assert {key: found[key] for key in ("since", "until", "at", "period", "source")} == {
        "since": "1989-04-21",
        "until": "1990",
        "at": None,
        "period": "1989–1990",
        "source": "The World Factbook, https://example.org",
    }


def test_a_reason_without_any(tmp_path: Path) -> None:
    reason = capital(tmp_path)
    assert str(reason) == "related France —capital→ Paris, copied"
    assert {reason.to_json()[key] for key in ("since", "until", "at", "period", "source")} == {None}


@pytest.fixture
def toy(tmp_path: Path) -> Toy:
    """A toy with statements whose weights are the initial ones, and whose text scores nothing."""
    toy = make_toy(tmp_path, statements=STATEMENTS)
    head = toy.model.latent.tails
    assert head.facts is not None
    head.query_HD.data.zero_()
    head.facts.context_HQ.data.zero_()
    head.facts.weight_Q.data = torch.tensor(START_WEIGHTS, dtype=torch.float64)
    toy.model.latent.cues.weight_Q.data.zero_()
    toy.model.latent.cues.context_HQ.data.zero_()
    return toy


@pytest.mark.parametrize(
    ("words", "expected"), [(["Mario", "is"], "Q3"), (["1980", "Mario", "is"], "Q4"), (["1978", "Mario", "is"], "Q2")]
)
def test_without_training_the_current_value_or_that_of_the_year(toy: Toy, words: list[str], expected: str) -> None:
    """Q3 is preferred, Q2 held from 1975 to 1989, Q4 in 1980 alone."""
    surface = ["@@START@@", *words]
    t = len(words)
    with torch.no_grad():
        h_TD = toy.model.encoder(torch.tensor([toy.vocabulary.encode(surface)])).h_BTD[0, [t]]
        latent = toy.model.text_latent(h_TD, toy.features.text_cues(surface, t, 1), first=t)
    graph = toy.graph
    edges = EdgeGroups.of(graph, graph.number("Q1"))
    relation = graph.find_relation("P1")
    assert relation is not None
    group = edges.relation.tolist().index(relation)
    p_N = latent.tails.of_edges(t, edges)[edges.first[group] :][: edges.size[group]]
    assert p_N.sum() == pytest.approx(1)
    tails = graph.tails(graph.number("Q1"), relation).tolist()
    assert graph.id(tails[int(np.argmax(p_N))]) == expected
