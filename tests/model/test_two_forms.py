"""Each formula in its two forms: over all positions of a batch, and along one text for many histories.

A random annotated text is scored by both. In the second form three histories stand side by side, so that a mix-up of
rows shows: the annotation of the text, one without mentions, and the annotation of another text.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
import torch

from kglm.model.cues import tail_weights
from kglm.model.histories import CONTINUE, FIRST, NONE, Histories
from kglm.model.latent import Hidden, TextLatent
from kglm.model.local_graph import EdgeGroups, MentionedEntities
from kglm.model.mention_state import document_states
from kglm.model.text import Text
from kglm.model.types import Type
from kglm.train.chunks import whole
from support.toys import ALL_OPTIONS, FACTS, MORE_FACTS, Step, Toy, annotated, make_toy, random_texts

LENGTH = 9
CASES = ("best", "everything on", "statements", "paper", "paper with missing facts", "window", "no facts", "topic")


class Case(NamedTuple):
    """A text, its annotation, and its hidden states."""

    toy: Toy
    steps: list[Step]
    surface: list[str]
    hidden: Hidden
    latent: TextLatent


@pytest.fixture(scope="module", params=[(name, seed) for name in CASES for seed in range(3)], ids=str)
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Case:
    name, seed = request.param
    toy = make_toy(tmp_path_factory.mktemp("toy"), **({"facts": (*FACTS, *MORE_FACTS)} | ALL_OPTIONS[name]))
    [steps] = random_texts(toy, LENGTH, 1, seed=seed)
    surface = annotated(toy, steps).tokens
    words = torch.tensor([toy.vocabulary.encode(surface)])
    with torch.no_grad():
        h_TD = toy.model.encoder(words).h_BTD[0, :LENGTH]
        latent = toy.model.text_latent(h_TD, toy.features.text_cues(surface, 0, LENGTH))
        return Case(toy, steps, surface, toy.model.hidden(h_TD), latent)


def histories_along(case: Case) -> list[Histories]:
    """Three histories before each position: of the annotation, without mentions, of another annotation."""
    toy = case.toy
    [other] = random_texts(toy, LENGTH, 1, seed=99)
    words = np.array(toy.vocabulary.encode(case.surface))
    text = Text("t", case.surface, words, toy.history.given)
    mentioned = MentionedEntities(toy.graph)
    histories = Histories.start(3, text, mentioned, toy.aliases, toy.history)
    found = []
    for t in range(LENGTH):
        found.append(histories.select(np.arange(3)))
        nodes = sorted({steps[t].node for steps in (case.steps, other)} - {-1})
        columns = []
        for steps in (case.steps, None, other):
            kind = Type.NONE if steps is None else steps[t].type
            starts = FIRST + nodes.index(steps[t].node) if steps is not None and steps[t].node >= 0 else NONE
            columns.append({Type.NONE: NONE, Type.CONTINUE: CONTINUE}.get(kind, starts))
        histories.advance(t, np.array(columns), nodes)
    return found


def encoded(case: Case, document_steps: list[Step]):  # type: ignore[no-untyped-def]
    return case.toy.encoder.encode(annotated(case.toy, document_steps))


def test_mention_states(case: Case) -> None:
    document = encoded(case, case.steps)
    starts_T = document.type_T != Type.CONTINUE
    batched_T = document_states(case.surface, document.node_T, starts_T, case.toy.aliases)
    along_T = [histories.states(t)[0] for t, histories in enumerate(histories_along(case))]
    assert batched_T.tolist() == along_T and len(set(along_T)) > 1


def test_types(case: Case) -> None:
    chunk = case.toy.builder.build([whole(encoded(case, case.steps))])
    types, model = chunk.types, case.toy.model
    with torch.no_grad():
        relation_RD = model.latent.relations.vectors(model.words, model.entities)
        batched_TC = model.latent.types.log_probs(
            case.hidden.x, types.state_BT[0], types.named, types.related_BT[0], types.continue_BT[0], relation_RD
        )
    along_TC = [histories.drawn_types(t, case.latent)[0][0] for t, histories in enumerate(histories_along(case))]
    np.testing.assert_allclose(np.stack(along_TC), batched_TC.numpy(), rtol=1e-9)


def test_missing(case: Case) -> None:
    """P(no mention), with all missing facts; the steps still sum to 1."""
    chunk = case.toy.builder.build([whole(encoded(case, case.steps))])
    types, latent, model = chunk.types, case.toy.model.latent, case.toy.model
    with torch.no_grad():
        relation_RD = latent.relations.vectors(model.words, model.entities)
        type_TC = latent.types.log_probs(
            case.hidden.x, types.state_BT[0], types.named, types.related_BT[0], types.continue_BT[0], relation_RD
        )
        scores = latent.relation_scores(case.hidden, chunk, relation_RD)
        batched_T = latent.plain_types(type_TC, case.hidden, chunk, scores, model.entities)
    along = [histories.types(t, case.latent)[0] for t, histories in enumerate(histories_along(case))]
    np.testing.assert_allclose([each[0, Type.NONE] for each in along], batched_T.numpy(), rtol=1e-9)
    np.testing.assert_allclose(np.exp(along).sum(-1), 1, rtol=1e-12)
    if latent.missing is not None:
        assert float((batched_T - type_TC[:, Type.NONE]).max()) > 1e-3


def test_parents(case: Case) -> None:
    if case.toy.history.facts == "none":  # there are no parents
        return
    starts = case.toy.builder.build([whole(encoded(case, case.steps))]).starts
    compared = 0
    for m, t in enumerate(starts.position_M.tolist()):
        node_P = starts.parent_MP[m]
        if not (node_P >= 0).any():
            continue
        with torch.no_grad():
            batched_P = case.toy.model.latent.parents.log_probs(
                case.hidden.x[[t]], case.hidden.p[[t]], node_P[None], starts.place_MP3[[m]], case.toy.model.entities
            )[0].exp()
        histories = histories_along(case)[t]
        slots = [histories.mentioned.slot(node) for node in node_P.tolist() if node >= 0]
        along_P = np.exp(histories.parents(t, case.latent)[0])
        exists_P = batched_P[node_P >= 0].numpy()
        if case.latent.missing is not None:  # then those of facts that exist
            exists_P = exists_P * np.exp(case.latent.missing.log_shares(t, histories.mentioned.node_P[slots])[0])
        np.testing.assert_allclose(along_P[slots], exists_P / exists_P.sum(), rtol=1e-9)
        assert along_P.sum() == pytest.approx(1)
        compared += 1
    assert compared or len(starts.position_M) < 2


def test_relations_and_tails(case: Case) -> None:
    """π(r | p) and π(e | p, r) of the paths to the entities of the text."""
    chunk = case.toy.builder.build([whole(encoded(case, case.steps))])
    paths, starts, latent = chunk.paths, chunk.starts, case.toy.model.latent
    if not len(paths.group_W):
        return
    with torch.no_grad():
        at_M = starts.position_M
        hidden_M = case.hidden.at(at_M)
        weight_M2 = tail_weights(latent.cues(hidden_M.x)) if latent.config.cues else None
        vector_RD = latent.relations.vectors(case.toy.model.words, case.toy.model.entities)
        scores = latent.relation_scores(case.hidden, chunk, vector_RD)
        row_G = scores.row_F[at_M[paths.group_start_G]]
        log_z_G = latent.relations.log_sums(scores.score_NR, row_G, paths)
        if latent.missing is not None:
            assert scores.log_total_N is not None and scores.handicap_N is not None
            log_z_G = latent.missing.log_z(log_z_G, scores.log_total_N[row_G], scores.handicap_N[row_G])
        relation_W = latent.relations.log_probs(scores.score_NR, row_G, paths, log_z_G)
        entities = case.toy.model.entities
        tail_W = latent.tails.log_probs(hidden_M.x, paths, chunk.tails, weight_M2, entities)
    for w, group in enumerate(paths.group_W.tolist()):
        m = int(paths.group_start_G[group])
        t, relation = int(at_M[m]), int(paths.relation_W[w])
        parent, node = int(starts.parent_MP[m, paths.group_parent_G[group]]), int(starts.node_M[m])
        log_z = case.latent.relations.log_z(t, np.array([parent]))[0]
        along = case.latent.relations.scores(t, np.array([relation]))[0] - log_z
        if case.latent.missing is not None:
            along += case.latent.missing.log_shares(t, np.array([parent]))[0][0]
        assert along == pytest.approx(float(relation_W[w]), rel=1e-9)
        edges = EdgeGroups.of(case.toy.graph, parent)
        group_of = edges.relation.tolist().index(relation)
        size = edges.size[[group_of]]
        [single] = case.latent.tails.of_paths(t, *map(np.array, ([node], [parent], [relation])), size)
        first = edges.first[group_of]
        place = first + edges.tail[first : first + size[0]].tolist().index(node)
        assert single == pytest.approx(float(tail_W[w].exp()), rel=1e-9)
        assert case.latent.tails.of_edges(t, edges)[place] == pytest.approx(single, rel=1e-9)


def test_new_entities(case: Case) -> None:
    toy, entities = case.toy, case.toy.model.entities
    chunk = toy.builder.build([whole(encoded(case, case.steps))])
    for t in range(LENGTH):
        node_N = torch.arange(len(toy.graph))
        h_ND = (case.hidden.p[t] + case.hidden.r[t]).expand(len(node_N), -1)
        with torch.no_grad():
            batched_N = toy.model.latent.new_entities.log_probs(
                h_ND, node_N, torch.ones(len(node_N), dtype=torch.bool), chunk.own, entities
            )
        along_N = case.latent.new_entities.log_probs(np.full(len(node_N), t), node_N.numpy())
        np.testing.assert_allclose(along_N, batched_N.numpy(), rtol=1e-9)
        nodes, p_N = case.latent.new_entities.most_probable(t, len(entities.real_E))
        np.testing.assert_allclose(p_N, np.exp(along_N[nodes]), rtol=1e-9)


def test_starts(case: Case) -> None:
    """p(start of e), summed over types, parents, relations and tails, is what training scores."""
    toy = case.toy
    if toy.model.config.latent.marginal != "entity" or toy.history.facts == "topic":
        return
    chunk = toy.builder.build([whole(encoded(case, case.steps))])
    with torch.no_grad():
        scores = toy.model.latent.score(case.hidden, chunk, toy.model.words, toy.model.entities)
    batched_M = scores.type_F[chunk.starts.position_M] + scores.new_M + scores.parent_M + scores.relation_M
    for m, (t, node) in enumerate(zip(chunk.starts.position_M.tolist(), chunk.starts.node_M.tolist(), strict=True)):
        histories = histories_along(case)[t]
        [type_SC] = histories.types(t, case.latent)
        [along_SN] = histories.starts(t, [node], (case.latent, type_SC))
        assert along_SN[0, 0] == pytest.approx(float(batched_M[m]), rel=1e-9)
