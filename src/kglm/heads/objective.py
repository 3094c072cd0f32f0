"""The training loss of a passage.

For each annotated span that a fact of the local graph explains,

    log( p(graph path) + p(all plain) ),

whose gradient reaches the type decision only; parent, relation and name train on the annotation:

    − log Σ_{(p, r)} π(p) π(r | p) π(e | p, r) − log p(name).

Words outside of such spans are plain: − log p(emitted by the base). During the warm-up, spans count their graph path
alone. Now and then the facts of a span are hidden: then its relation is one that the parent lacks.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from kglm.heads.model import ClauseScores, Heads, MentionState, Type
from kglm.heads.prepared import CONTINUE_FEATURE, Prepared
from kglm.heads.tails import LEAST, TailGroup, TailInputs, base_scores, is_scored, tail_inputs, tail_log_probs
from kglm.model.logsums import segment_logsumexp


class Spans(NamedTuple):
    """Annotated spans that facts explain, flattened."""

    start_M: Tensor
    end_M: Tensor
    path_span_W: Tensor
    path_slot_W: Tensor
    path_relation_W: Tensor
    path_log_tail_W: Tensor
    """−log n where all n tails are equally probable, else 0."""
    tail_group_W: Tensor
    """Group of tails that are scored for a path; −1 if they are equally probable."""
    step_span_S: Tensor
    """Span of each subword inside a span."""
    step_position_S: Tensor
    child_step_Y: Tensor
    """Step of each child in the trie of names."""
    child_Y: Tensor
    child_kind_Y: Tensor
    child_said_Y: Tensor
    """True for the child that is said."""
    state_S: Tensor
    """State of the mention before each step, of no use at the first one."""
    end_state_M: Tensor
    tails: TailInputs
    tail_place_W: Tensor
    """Place of the path's tail among the scored tails; 0 without scores."""
    end_children: list[list[int]]
    """Subwords with which the name goes on after the span, if it does."""


_COLUMNS = tuple(name for name in Spans._fields if name not in ("tails", "tail_place_W", "end_children"))


class Losses(NamedTuple):
    """Sums over a passage, in nats."""

    total: Tensor
    text: float
    """−log p of the text, each span by graph path or plain words."""
    base: float
    """−log p of the text by the base alone."""
    spans: int
    right: int = 0
    """Spans whose relation is the most probable one that its parent has."""


def find_spans(prepared: Prepared) -> Spans:
    """The annotated spans that the local graph explains and whose words are a name of the entity."""
    passage, local, names = prepared.passage, prepared.local, prepared.tables.names
    linked_TP = prepared.places.log_p_TP.numpy() > -math.inf
    columns: dict[str, list[int | float | bool]] = {name: [] for name in _COLUMNS}
    end_children: list[list[int]] = []
    groups: list[TailGroup] = []
    tail_of_group: list[int] = []
    count = 0
    for mention in passage.mentions:
        paths = local.mentioned.paths_to([mention.node])
        if paths is None:
            continue
        legal = linked_TP[mention.start, paths.slot_W] & (paths.size_W <= prepared.max_tails)
        if not legal.any():
            continue
        ids = tuple(passage.ids[mention.start : mention.end])
        if not any(name.ids == ids for name in names.of(mention.node)):
            continue
        columns["start_M"].append(mention.start)
        columns["end_M"].append(mention.end)
        for slot, relation, size in zip(
            paths.slot_W[legal].tolist(), paths.relation_W[legal].tolist(), paths.size_W[legal].tolist(), strict=True
        ):
            columns["path_span_W"].append(count)
            columns["path_slot_W"].append(slot)
            columns["path_relation_W"].append(relation)
            columns["path_log_tail_W"].append(0.0 if is_scored(size) else -math.log(size))
            columns["tail_group_W"].append(len(groups) if is_scored(size) else -1)
            if is_scored(size):
                groups.append(TailGroup(mention.start, local.mentioned.nodes[slot], relation))
                tail_of_group.append(mention.node)
        for n, said in enumerate(ids):
            children = names.children(mention.node, ids[:n])
            step = len(columns["step_span_S"])
            columns["step_span_S"].append(count)
            columns["step_position_S"].append(mention.start + n)
            columns["state_S"].append(MentionState.MAY_END if children.complete else MentionState.INSIDE)
            for child, kind in children.kinds.items():
                columns["child_step_Y"].append(step)
                columns["child_Y"].append(child)
                columns["child_kind_Y"].append(int(kind))
                columns["child_said_Y"].append(child == said)
        after = names.children(mention.node, ids)
        columns["end_state_M"].append(MentionState.MAY_END if after.kinds else MentionState.ENDED)
        end_children.append(list(after.kinds))
        count += 1
    tensors = {
        name: torch.tensor(
            values,
            dtype=torch.float32 if name == "path_log_tail_W" else torch.bool if name == "child_said_Y" else torch.int64,
        )
        for name, values in columns.items()
    }
    word_T = passage.word_T.tolist()
    tails = tail_inputs(groups, passage.surface, word_T, prepared.tables, prepared.base_scores)
    said_Y = tails.tail_Y == torch.tensor(tail_of_group, dtype=torch.int64)[tails.group_Y]
    place_of = torch.zeros(len(groups) + 1, dtype=torch.int64)
    place_of[tails.group_Y[said_Y]] = said_Y.nonzero()[:, 0]
    place_W = place_of[tensors["tail_group_W"]]
    return Spans(**tensors, tails=tails, tail_place_W=place_W, end_children=end_children)


def outside_states(prepared: Prepared) -> Tensor:
    """Mention states at positions where no mention runs."""
    return torch.where(prepared.begun.legal_T, int(MentionState.BEGUN), int(MentionState.NONE))


def begun_gain(heads: Heads, prepared: Prepared) -> Tensor:
    """log of p(subword | a name that has begun goes on) / p_B(subword); −inf where it does not go on so."""
    begun, ids_T, base_T = prepared.begun, prepared.features.ids_T, prepared.features.log_p_T
    gain_T = torch.full_like(base_T, -math.inf)
    if not len(begun.position_Y):
        return gain_T
    score_Y = heads.begun_scores(begun.log_weight_Y, begun.base_Y)
    log_z_T = segment_logsumexp(score_Y, begun.position_Y, len(ids_T))
    said = begun.subword_Y == ids_T[begun.position_Y]
    t = begun.position_Y[said]
    return gain_T.index_copy(0, t, score_Y[said] - log_z_T[t] - base_T[t])


def passage_loss(
    heads: Heads,
    prepared: Prepared,
    spans: Spans,
    g_TG: Tensor,
    vector_RK: Tensor,
    *,
    joint: bool,
    hidden_M: Tensor,
    closer: ClauseScores | None = None,
) -> Losses:
    """The loss of a passage, given g_t and v_r.

    `joint`: spans count their graph path alone; `hidden_M`: spans whose facts are hidden; `closer`: the clauses before
    the spans that the sentence encoder looks at.
    """
    features, count = prepared.features, len(g_TG)
    base_T = features.log_p_T
    base_total = float(-base_T.double().sum())
    places = len(prepared.local)
    feature_TQ = prepared.feature_TQ
    legal_T3 = torch.tensor([True, False, False]).repeat(count, 1)
    if places:
        legal_T3[:, Type.RELATED] = (prepared.places.log_p_TP > -math.inf).any(-1)
    score_T3 = heads.types(g_TG)
    legal_T3[:, Type.CONTINUE] = prepared.begun.legal_T
    type_T3 = heads.type_log_probs(score_T3, outside_states(prepared), feature_TQ, legal_T3)
    plain_T = torch.logaddexp(type_T3[:, Type.PLAIN], type_T3[:, Type.CONTINUE] + begun_gain(heads, prepared))
    if not places:
        emitted_T = plain_T
        return Losses(-emitted_T.sum(), base_total - float(emitted_T.sum()), base_total, 0)
    relation_TR = heads.relation_scores(g_TG, vector_RK, prepared.cues(0, count), closer)
    handicap_T = heads.handicaps(g_TG)
    fit_PR = heads.fit_scores(vector_RK, prepared.has_PR)
    lacking_PR = heads.lacking_scores(fit_PR, prepared.has_PR, prepared.tables.graph.relation_count)
    log_z_TP, lacking_TP = heads.log_z(relation_TR, handicap_T, prepared.has_PR, lacking_PR)
    vector_PK = (prepared.has_PR @ vector_RK) / prepared.has_PR.sum(-1, keepdim=True).clamp(min=1)
    parent_TP = heads.parent_log_probs(g_TG, vector_PK, prepared.places)
    if bool(prepared.large_PR.any()):
        lacking_TP = lacking_TP + heads.share_of(relation_TR, log_z_TP, prepared.large_PR)
    missing_T = (parent_TP.exp() * lacking_TP).sum(-1)
    log_missing_T = missing_T.clamp(min=1e-12).log()
    related_T = torch.where(legal_T3[:, Type.RELATED], type_T3[:, Type.RELATED] + log_missing_T, -math.inf)
    emitted_T = torch.logaddexp(plain_T, related_T)
    if not len(spans.start_M):
        return Losses(-emitted_T.sum(), base_total - float(emitted_T.detach().sum()), base_total, 0)

    # Facts
    m_W, slot_W, relation_W = spans.path_span_W, spans.path_slot_W, spans.path_relation_W
    t_W = spans.start_M[m_W]
    log_parent_W, score_W = parent_TP[t_W, slot_W], relation_TR[t_W, relation_W]
    log_tail_W = spans.path_log_tail_W
    if len(spans.tails.tail_Y):
        scored_W = spans.tail_group_W >= 0
        tail_Y = tail_log_probs(heads, spans.tails, int(scored_W.sum()))
        log_tail_W = torch.where(scored_W, tail_Y[spans.tail_place_W], log_tail_W)
    path_W = log_parent_W + score_W - log_z_TP[t_W, slot_W] + log_tail_W
    count_M = len(spans.start_M)
    fact_M = segment_logsumexp(path_W, m_W, count_M)
    without_W = score_W + handicap_T[t_W] + fit_PR[slot_W, relation_W]  # the score of r if p lacked it
    share_W = (score_W - log_z_TP[t_W, slot_W]).exp().clamp(max=1 - 1e-6)
    log_rest_W = log_z_TP[t_W, slot_W] + torch.log1p(-share_W)
    lacking_W = log_parent_W + without_W - torch.logaddexp(log_rest_W, without_W)
    lacking_M = segment_logsumexp(lacking_W, m_W, count_M)

    # Names
    position_Y = spans.step_position_S[spans.child_step_Y]
    base_Y = base_scores(features, prepared.tables.embedding_VD, position_Y, spans.child_Y)
    name_Y = heads.name_scores(base_Y, spans.child_kind_Y)
    steps = len(spans.step_span_S)
    name_S = name_Y[spans.child_said_Y] - segment_logsumexp(name_Y, spans.child_step_Y, steps)
    name_M = torch.zeros(count_M).index_add(0, spans.step_span_S, name_S)

    # Types inside of spans
    children_S = torch.zeros(steps).index_add(0, spans.child_step_Y, base_Y.exp())
    later_S = spans.step_position_S != spans.start_M[spans.step_span_S]
    t_S = spans.step_position_S[later_S]
    inside_SQ = feature_TQ[t_S].clone()
    inside_SQ[:, CONTINUE_FEATURE] = (children_S[later_S] + LEAST).log() - math.log(LEAST)
    legal_S3 = legal_T3[t_S].clone()
    legal_S3[:, Type.CONTINUE] = True
    type_S3 = heads.type_log_probs(score_T3[t_S], spans.state_S[later_S], inside_SQ, legal_S3)
    goes_on_M = torch.zeros(count_M).index_add(0, spans.step_span_S[later_S], type_S3[:, Type.CONTINUE])

    # The position after a span
    t_E = spans.end_M.clamp(max=count - 1)
    end_EQ = feature_TQ[t_E].clone()
    legal_E3 = legal_T3[t_E].clone()
    legal_E3[:, Type.CONTINUE] = False
    end_EQ[:, CONTINUE_FEATURE] = 0
    for n, children in enumerate(spans.end_children):
        if children:
            subword = torch.tensor(children)
            mass = (
                base_scores(features, prepared.tables.embedding_VD, t_E[n].expand(len(children)), subword).exp().sum()
            )
            end_EQ[n, CONTINUE_FEATURE] = (mass + LEAST).log() - math.log(LEAST)
            legal_E3[n, Type.CONTINUE] = True
    type_E3 = heads.type_log_probs(score_T3[t_E], spans.end_state_M, end_EQ, legal_E3)
    starts = torch.zeros(count + 1, dtype=torch.bool)
    starts[spans.start_M] = True
    exit_M = torch.logaddexp(type_E3[:, Type.PLAIN], type_E3[:, Type.RELATED] + log_missing_T[t_E])
    alone_M = (spans.end_M < count) & ~starts[spans.end_M]  # else the next span's start decides the type there
    exit_M = torch.where(alone_M, exit_M, 0.0)
    none_exit_M = torch.where(alone_M, emitted_T[t_E], 0.0)

    # Spans
    plain_S = emitted_T[spans.step_position_S] + base_T[spans.step_position_S]
    plain_M = torch.zeros(count_M).index_add(0, spans.step_span_S, plain_S) + none_exit_M
    related_M = type_T3[spans.start_M, Type.RELATED]
    graph_M = related_M + fact_M.detach() + name_M.detach() + goes_on_M + exit_M
    either_M = torch.logaddexp(graph_M, plain_M)
    missing_M = torch.logaddexp(related_M + lacking_M, related_M.detach() - 20) + plain_M - emitted_T[spans.start_M]
    loss_M = -(graph_M if joint else either_M) - fact_M - name_M
    loss_M = torch.where(hidden_M, -missing_M, loss_M)

    outside = torch.ones(count, dtype=torch.bool)
    outside[spans.step_position_S] = False
    outside[spans.end_M[alone_M]] = False
    plain_loss = -emitted_T[outside].sum()
    with torch.no_grad():
        said = torch.ones(count, dtype=torch.bool)
        said[spans.step_position_S] = False
        text = float(-either_M.sum() - emitted_T[outside].sum() - base_T[said].sum())
        own_WR = relation_TR[t_W].masked_fill(prepared.has_PR[slot_W] == 0, -math.inf)
        best_W = score_W >= own_WR.amax(-1)
        right = int((torch.zeros(count_M).index_add(0, m_W, best_W.float()) > 0).sum())
    return Losses(plain_loss + loss_M.sum(), text, base_total, count_M, right)
