"""The latent variables of a position: type, new entity, parent, relation, tail. One module for model p and proposal q.

With h = [h_x ; h_p ; h_r]:

    type        see `types`           new entity   see `new_entities`
    parent      see `parents`         relation     see `relations`         tail   see `tails`
    missing     see `missing`

    P(e | related) = Σ_{(p, r, e)} π(p) π(r | p) π(e | p, r)
    P(start of e)  = p(new) P(e | new) + p(related) P(e | related)
    P(no mention)  = p(none) + p(related) P(missing),    P(missing) = Σ_{(p, r): p lacks r} π(p) π(r | p)
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from kglm.model.arrays import Floats, Ints
from kglm.model.chunk import Chunk
from kglm.model.cues import CueWeights, TextCues, tail_weights
from kglm.model.entities import EntityTable
from kglm.model.graph_features import GraphFeatures
from kglm.model.local_graph import PathsTo
from kglm.model.logsums import add_log_probs, masked_logsumexp, segment_logsumexp
from kglm.model.missing import MissingHead, TextMissing
from kglm.model.new_entities import NewEntityHead, TextNewEntities
from kglm.model.options import LatentConfig
from kglm.model.parents import ParentHead, TextParents
from kglm.model.relations import RelationHead, TextRelations
from kglm.model.tails import TailHead, TextTails
from kglm.model.types import TextTypes, Type, TypeHead
from kglm.model.word_head import WordHead


class Hidden(NamedTuple):
    """h in three pieces, of any leading shape: for types and words, for parents, for relations."""

    x: Tensor
    p: Tensor
    r: Tensor

    def at(self, index: Tensor) -> Hidden:
        """The pieces at some positions."""
        return Hidden(self.x[index], self.p[index], self.r[index])


class LatentScores(NamedTuple):
    """Log-probabilities of the annotation, by component.

    The entity of a mention counts as `new_M`, or as `parent_M`, log P(a parent with a path to e), plus `relation_M`,
    log P(e | such a parent). A mention start that no fact and no new entity explains has 0, and `explained_M` is False.
    """

    type_F: Tensor
    """Outside of mentions: P(no mention)."""
    new_M: Tensor
    parent_M: Tensor
    relation_M: Tensor
    explained_M: Tensor
    asked_M: Tensor
    """log p(the text asks for the hidden facts | related), or 0: what training adds."""


class RelationScores(NamedTuple):
    """Scores of all relations at some positions, with what missing facts add."""

    score_NR: Tensor
    row_F: Tensor
    """Row of each flat position, -1 if it has none."""
    log_total_N: Tensor | None = None
    handicap_N: Tensor | None = None
    """None if the model has no missing facts."""


class Reached(NamedTuple):
    """How the facts of candidate parents reach the entities of mention starts."""

    log_p_M: Tensor
    """log P(e | related)."""
    parent_M: Tensor
    """log of the total π(p) of the parents that reach e at all."""


class Latent(nn.Module):
    """Distributions of the latent variables at the positions of a batch."""

    def __init__(self, config: LatentConfig, hidden: int, entities: EntityTable) -> None:
        super().__init__()
        self.config = config
        self.types = TypeHead(config, hidden, entities.size)
        self.new_entities = NewEntityHead(config, entities)
        self.parents = ParentHead(config, hidden)
        self.relations = RelationHead(config, hidden, entities)
        self.tails = TailHead(config, hidden, entities.size)
        self.cues = CueWeights(hidden, trained=config.cues and config.facts != "none")
        self.missing = (
            MissingHead(hidden, len(entities.relation_RD), cues=config.reads_cues) if config.offers_missing else None
        )

    def relation_scores(self, hidden: Hidden, chunk: Chunk, relation_RD: Tensor) -> RelationScores:
        """Scores of relations where they are needed: at mention starts with paths; in use, missing facts need them
        everywhere."""
        count, device, named = len(hidden.x), hidden.x.device, chunk.types.named
        if self.missing is None or self.training:
            # starts without a path may have no candidate at all
            used_N = chunk.starts.position_M[torch.unique(chunk.paths.group_start_G)]
            row_F = torch.full((count,), -1, device=device)
            row_F[used_N] = torch.arange(len(used_N), device=device)
            hidden, named = hidden.at(used_N), named.at(used_N)
        else:
            row_F = torch.arange(count, device=device)
        weight_NQ = self.cues(hidden.x) if self.config.cues else None
        score_NR = self.relations.scores(hidden.r, relation_RD, weight_NQ, chunk.cues, row_F)
        if self.missing is None:
            return RelationScores(score_NR, row_F)
        handicap_N = self.missing.handicap(hidden.x, named)
        return RelationScores(score_NR, row_F, self.relations.log_totals(score_NR), handicap_N)

    def reached(self, hidden_M: Hidden, chunk: Chunk, scores: RelationScores, entities: EntityTable) -> Reached:
        """Sum π(p) π(r | p) π(e | p, r) over the paths to the entity of each mention start: all, or those listed."""
        paths, count = chunk.paths, len(chunk.starts.position_M)
        if not len(paths.group_W):
            none_M = hidden_M.p.new_full((count,), -math.inf)
            return Reached(none_M, none_M)
        used, used_G = torch.unique(paths.group_start_G, return_inverse=True)  # others may have no candidate at all
        few, group_W = hidden_M.at(used), paths.group_W
        log_parent_NP = self.parents.log_probs(
            few.x, few.p, chunk.starts.parent_MP[used], chunk.starts.place_MP3[used], entities
        )
        log_parent_G = log_parent_NP[used_G, paths.group_parent_G]
        row_G = scores.row_F[chunk.starts.position_M[paths.group_start_G]]
        log_z_G = self.relations.log_sums(scores.score_NR, row_G, paths)
        if self.missing is not None:
            assert scores.log_total_N is not None and scores.handicap_N is not None
            log_z_G = self.missing.log_z(log_z_G, scores.log_total_N[row_G], scores.handicap_N[row_G])
        relation_W = self.relations.log_probs(scores.score_NR, row_G, paths, log_z_G)
        weight_M2 = tail_weights(self.cues(hidden_M.x)) if self.config.cues else None
        tail_W = self.tails.log_probs(hidden_M.x, paths, chunk.tails, weight_M2, entities)
        relation_W = relation_W + tail_W
        if self.config.marginal == "annotated":
            relation_W = relation_W.masked_fill(~paths.listed_W, -math.inf)
        path_W = log_parent_G[group_W] + relation_W
        reaches_G = torch.zeros_like(used_G).index_add(0, group_W, (relation_W > -math.inf).long()) > 0
        reaching_G = log_parent_G.detach().masked_fill(~reaches_G, -math.inf)
        return Reached(
            segment_logsumexp(path_W, paths.group_start_G[group_W], count),
            segment_logsumexp(reaching_G, paths.group_start_G, count),
        )

    def plain_types(
        self, type_FC: Tensor, hidden: Hidden, chunk: Chunk, scores: RelationScores, entities: EntityTable
    ) -> Tensor:
        """log P(no mention) at flat positions.

        In training, a plain word counts as ∅ alone. If it could also be explained by a missing fact, nothing in the
        words would tell the two apart, and texts that ask for nothing would come to ask for facts.
        """
        log_none_F, log_related_F = type_FC[:, Type.NONE], type_FC[:, Type.RELATED]
        if self.missing is None or self.training:
            return log_none_F
        candidates = chunk.candidates
        assert candidates is not None, "the chunk was built for training"
        if not candidates.node_BP.shape[1]:
            return log_none_F
        assert scores.log_total_N is not None and scores.handicap_N is not None
        h_x_BTH, h_p_BTD = (piece.view(*candidates.place_BTP3.shape[:2], -1) for piece in (hidden.x, hidden.p))
        log_parent_BTP = self.parents.log_probs_of_rows(
            h_x_BTH, h_p_BTD, candidates.node_BP, candidates.place_BTP3, entities
        )
        missing_F = self.missing.log_shares(
            scores.score_NR, scores.log_total_N, scores.handicap_N, log_parent_BTP, candidates
        )
        return torch.logaddexp(log_none_F, add_log_probs(log_related_F, missing_F))

    def asked(self, hidden_M: Hidden, chunk: Chunk, scores: RelationScores, entities: EntityTable) -> Tensor:
        """log p(the text asks for the hidden facts | related) at each mention start, in a graph that lacks these facts.

        0 where training hides none.
        """
        facts, count = chunk.hidden, len(chunk.starts.position_M)
        if self.missing is None or not len(facts.group_W):
            return hidden_M.p.new_zeros(count)
        assert scores.log_total_N is not None and scores.handicap_N is not None
        used, used_G = torch.unique(facts.group_start_G, return_inverse=True)
        few, starts = hidden_M.at(used), chunk.starts
        log_parent_NP = self.parents.log_probs(few.x, few.p, starts.parent_MP[used], starts.place_MP3[used], entities)
        row_G = scores.row_F[starts.position_M[facts.group_start_G]]
        asked_M = self.missing.log_asked(
            scores.score_NR[row_G[facts.group_W], facts.relation_W],
            self.relations.log_sums(scores.score_NR, row_G, facts),
            scores.log_total_N[row_G],
            scores.handicap_N[row_G],
            log_parent_NP[used_G, facts.group_parent_G],
            facts,
            count,
        )
        return asked_M.masked_fill(asked_M == -math.inf, 0.0)

    def score(self, hidden: Hidden, chunk: Chunk, words: WordHead, entities: EntityTable) -> LatentScores:
        """Log-probability of the chunk's annotation, by component."""
        relation_RD = self.relations.vectors(words, entities)
        types, starts = chunk.types, chunk.starts
        type_FC = self.types.log_probs(
            hidden.x,
            types.state_BT.flatten(),
            types.named,
            types.related_BT.flatten(),
            types.continue_BT.flatten(),
            relation_RD,
        )
        scores = self.relation_scores(hidden, chunk, relation_RD)
        type_F = type_FC.gather(1, types.type_BT.flatten()[:, None])[:, 0]
        plain_F = self.plain_types(type_FC, hidden, chunk, scores, entities)
        type_F = torch.where((types.type_BT == Type.NONE).flatten(), plain_F, type_F)
        at_M = starts.position_M
        log_new_M, log_related_M = type_FC[at_M, Type.NEW], type_FC[at_M, Type.RELATED]
        log_start_M = torch.logaddexp(log_new_M, log_related_M)
        # where the annotated type is illegal, the score is that of any mention start
        type_F = type_F.index_copy(0, at_M, torch.where(type_F[at_M] > -math.inf, type_F[at_M], log_start_M))
        hidden_M = hidden.at(at_M)
        reached_M, parent_M = self.reached(hidden_M, chunk, scores, entities)
        is_new_M = starts.type_M == Type.NEW
        both = self.config.marginal == "entity" and self.config.facts != "topic"
        wanted_M = torch.ones_like(is_new_M) if both else is_new_M
        new_M = self.new_entities.log_probs(hidden_M.p + hidden_M.r, starts.node_M, wanted_M, chunk.own, entities)
        if both:
            # the annotated type does not matter, only the entity: the type is "new or related"
            both_M2 = torch.stack([add_log_probs(log_new_M, new_M), add_log_probs(log_related_M, reached_M)], -1)
            entity_M = add_log_probs(-log_start_M, masked_logsumexp(both_M2, both_M2 > -math.inf))
            type_F = type_F.index_copy(0, at_M, log_start_M)
        else:
            entity_M = torch.where(is_new_M, new_M, reached_M)
        explained_M = entity_M > -math.inf
        entity_M = entity_M.masked_fill(~explained_M, 0.0)
        as_new_M = is_new_M | (parent_M == -math.inf)
        # a mention that is annotated as related may be new as well: then it costs less than the parents' share says
        parent_M = torch.maximum(parent_M, entity_M.detach()).masked_fill(as_new_M, 0.0)
        return LatentScores(
            type_F,
            entity_M.masked_fill(~as_new_M, 0.0),
            parent_M,
            (entity_M - parent_M).masked_fill(as_new_M, 0.0),
            explained_M,
            self.asked(hidden_M, chunk, scores, entities),
        )


class TextLatent:
    """Distributions of the latent variables along one text, for many mention histories.

    All histories share the hidden states, which depend on the words only, so each score is computed once.
    """

    def __init__(
        self,
        latent: Latent,
        hidden: Hidden,
        features: GraphFeatures,
        relation_RD: Tensor,
        cues: TextCues | None,
        *,
        first: int = 0,
        temperature: float = 1.0,
        log_z_T: Floats | None = None,
    ) -> None:
        """`hidden` are the states from position `first` on; all scores are divided by the temperature.

        `log_z_T` are the sums over all new entities, where they are known: see `TextNewEntities`.
        """
        assert features.entities is not None
        entities, graph = features.entities, features.graph
        scale = 1 / temperature
        named = None if cues is None else cues.named(hidden.x.device)
        weighs_cues = cues is not None and latent.config.cues
        weight_TQ = latent.cues(hidden.x) if weighs_cues else None
        weight_T2 = None if weight_TQ is None else tail_weights(weight_TQ)
        cue_TK2 = None if cues is None else cues.relation_TK2
        self.types = TextTypes(latent.types, hidden.x, named, relation_RD, first=first, scale=scale)
        self.new_entities = TextNewEntities(
            latent.new_entities, hidden.p + hidden.r, entities, first=first, scale=scale, log_z_T=log_z_T
        )
        self.parents = TextParents(latent.parents, hidden.x, hidden.p, entities, first=first, scale=scale)
        self.relations = TextRelations(hidden.r, relation_RD, graph, weight_TQ, cue_TK2, first=first, scale=scale)
        self.tails = TextTails(latent.tails, hidden.x, features, weight_T2, cues, first=first, scale=scale)
        self.missing: TextMissing | None = None
        if latent.missing is not None:
            self.missing = TextMissing(latent.missing, hidden.x, named, self.relations, graph, first=first, scale=scale)

    def new_starts(self, t: int, node_N: Ints, type_SC: Floats) -> Floats:
        """log p(new) p(e | new) of each history and entity (S × N)."""
        log_p_N = self.new_entities.log_probs(np.full(len(node_N), t), node_N)
        return np.asarray(type_SC[:, Type.NEW, None] + log_p_N)

    def add_related_starts(
        self,
        log_p_SN: Floats,
        t: int,
        node_N: Ints,
        type_SC: Floats,
        parent_SP: Floats,
        node_P: Ints,
        paths: PathsTo,
    ) -> Floats:
        """`log_p_SN` with p(related) P(e | related) added, given π(p) and the paths to the entities."""
        columns, column_W = np.unique(paths.column_W, return_inverse=True)
        slots, slot_W = np.unique(paths.slot_W, return_inverse=True)
        parent_W, tail_W = node_P[paths.slot_W], node_N[paths.column_W]
        log_z_W = self.relations.log_z(t, node_P[slots])[slot_W]
        p_tail_W = self.tails.of_paths(t, tail_W, parent_W, paths.relation_W, paths.size_W)
        mass_W = np.exp(self.relations.log_probs(t, paths.relation_W, log_z_W)) * p_tail_W
        mass_Y = np.bincount(slot_W * len(columns) + column_W, mass_W, len(slots) * len(columns))
        with np.errstate(divide="ignore"):
            log_reached_SN = np.log(parent_SP[:, slots] @ mass_Y.reshape(len(slots), len(columns)))
        log_p_SN[:, columns] = np.logaddexp(log_p_SN[:, columns], type_SC[:, Type.RELATED, None] + log_reached_SN)
        return log_p_SN
