"""A toy world in the nine subwords of `support.causal`: a base, a graph, heads with weights drawn at random."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from kglm.heads.all_names import AllNames
from kglm.heads.clauses import clause_texts
from kglm.heads.features import compute
from kglm.heads.keys import ENCODED
from kglm.heads.local import Link
from kglm.heads.meanings import Known, Meanings, RelationList
from kglm.heads.model import Heads, MentionState, Type
from kglm.heads.names import NameTable
from kglm.heads.options import HeadsConfig
from kglm.heads.passage import Passage
from kglm.heads.prepared import Prepared, prepare
from kglm.heads.scoring import LIKELY
from kglm.heads.tables import GraphTables
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.tail_features import TailFeatureReader
from kglm.model.cues import Cues
from kglm.pretrained.base import BaseModel
from kglm.text.document import START
from kglm.text.encoder import Vectors
from support.causal import LETTERS, save_letters
from support.worlds import make_store

FACTS = (
    ("Q1", "P1", "Q2"),
    ("Q1", "P1", "Q3"),
    ("Q1", "P2", "Q3"),
    ("Q2", "P2", "Q4"),
    ("Q4", "P3", "Q1"),
)
NAMES = {
    "Q1": ("a",),
    "Q2": ("ab", "b"),
    "Q3": ("ab a", "ab ab", "a"),
    "Q4": ("b", "b a b"),
    "P1": ("a",),
    "P2": ("b ab",),
    "P3": ("ab",),
}


KNOWN = (Known("P9", ("b a",)),)
"""A relation that texts may ask for and the graph lacks."""


class LetterEncoder:
    """Texts to unit vectors that depend on the counts of their letters."""

    name = "letters"

    def encode(self, texts: Sequence[str]) -> Vectors:
        table = np.random.default_rng(0).normal(size=(4, ENCODED))
        counts = np.array([[text.count(letter) for letter in "ab it"[:3]] + [1] for text in texts])
        vector_ND = counts @ table
        return np.asarray(vector_ND / np.linalg.norm(vector_ND, axis=1, keepdims=True), np.float32)


class LetterWorld:
    """Base, graph and heads."""

    def __init__(
        self, home: Path, *, missing: bool = True, max_tails: int = 1000, encoder: bool = True, seed: int = 0
    ) -> None:
        self.base = BaseModel.open(save_letters(home / "letters"), dtype=torch.float32)
        self.graph = KnowledgeGraph.open(make_store(home / "graph", FACTS, NAMES))
        generator = torch.Generator().manual_seed(seed)
        relations = RelationList.of(self.graph, KNOWN)
        self.max_tails = max_tails
        self.tables = GraphTables(
            self.base,
            relations,
            NameTable(self.graph, self.base.subwords),
            Cues(self.graph, str.split),
            TailFeatureReader(self.graph),
            Meanings.of(relations, LetterEncoder()) if encoder else None,
            torch.randn(2 * len(relations), 6, generator=generator),
            self.base.model.embedding_table,
            AllNames.of(self.graph, self.base.subwords, any_case=True),
        )
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.heads = Heads(
                HeadsConfig(state=8, relation=4, missing=missing, max_tails=max_tails), self.base.model.config.hidden, 6
            )
            for parameter in self.heads.parameters():
                parameter.data += 0.5 * torch.randn_like(parameter)
            self.heads.types.bias.data += torch.tensor([-1.0, 2.0, 1.0])
            # All parts matter: no relation takes all of the mass, and the graph has a say.
            self.heads.handicap.bias.data += 3
            self.heads.similar.data = torch.tensor([2.0, 1.5])
            self.heads.type_features.data *= 0.1
        self.heads.eval()

    def links(self, *links: tuple[int, str, float]) -> list[Link]:
        """Links of mentions of one subword, given the positions behind them."""
        return [Link(max(end - 1, 0), end, self.graph.number(id), p) for end, id, p in links]

    def passage(self, ids: Sequence[int]) -> Passage:
        """A text given as subwords, each a word of its own."""
        count = len(ids)
        surface = [START, *(LETTERS[id].replace("Ġ", "").strip() or ";" for id in ids)]
        texts = [self.base.subwords.texts[id] for id in ids]
        ends = np.cumsum([len(text) for text in texts]).astype(np.int64)
        words = np.arange(1, count + 1)
        return Passage("toy", "".join(texts), list(ids), ends, words, np.ones(count, np.bool_), surface, ())

    def prepared(self, ids: Sequence[int], links: Sequence[Link]) -> Prepared:
        """A text given as subwords, ready to be scored."""
        return prepare(self.passage(ids), compute(self.base, ids), self.tables, links, self.max_tails)


def brute_force(world: LetterWorld, prepared: Prepared) -> float:
    """log p(text): a sum over all annotations, written out from the formulas."""
    ids, heads, tables = prepared.passage.ids, world.heads, prepared.tables
    with torch.no_grad():
        g_TG = heads.states(prepared.features.middle_TD[None], prepared.features.last_TD[None])[0][0]
        vector_RK = heads.relation_vectors(tables.key_RD)
        relation_TR = heads.relation_scores(g_TG, vector_RK, prepared.cues(0, len(ids))).clone()
        handicap_T, score_T3 = heads.handicaps(g_TG), heads.types(g_TG)
    base_TV = _base(world, ids)
    all_names = [
        (tuple(world.base.subwords.encode(f" {text}").ids), 1.0 + len(tables.graph.edges(node)[0]))
        for node in range(len(tables.graph))
        for text in dict.fromkeys(tables.graph.names(node))
    ]

    def names_after(node: int, prefix: tuple[int, ...]) -> dict[int, int]:
        found: dict[int, int] = {}
        for name in tables.names.of(node):
            if name.ids[: len(prefix)] == prefix and len(name.ids) > len(prefix):
                child = name.ids[len(prefix)]
                found[child] = min(found.get(child, 99), int(name.kind))
        return found

    def said(t: int, node: int, prefix: tuple[int, ...]) -> float:
        children = names_after(node, prefix)
        if ids[t] not in children:
            return 0.0
        score = {
            c: float((heads.name_weight * base_TV[t, c] + heads.name_kind[k]).detach()) for c, k in children.items()
        }
        return math.exp(score[ids[t]]) / sum(map(math.exp, score.values()))

    def begun(t: int) -> dict[int, float]:
        """Weights of the ways in which a name goes on that the subwords before t begin."""
        words = [tuple(name) for name, _ in all_names]
        prefix: tuple[int, ...] | None = None
        for id in ids[:t]:
            if prefix is not None and any(w[: len(prefix) + 1] == (*prefix, id) for w in words):
                prefix = (*prefix, id)
            else:
                prefix = (id,) if any(w[:1] == (id,) for w in words) else None
        found: dict[int, float] = {}
        for name, weight in all_names:
            if prefix is not None and len(name) > len(prefix) and name[: len(prefix)] == prefix:
                found[name[len(prefix)]] = found.get(name[len(prefix)], 0.0) + weight
        return found

    def goes_on(t: int) -> float:
        """p(subword t | a name that has begun goes on)."""
        with torch.no_grad():
            gamma, beta = heads.begun_weights.tolist()
        score = {c: gamma * math.log(w) + beta * float(base_TV[t, c]) for c, w in begun(t).items()}
        return math.exp(score[ids[t]]) / sum(map(math.exp, score.values())) if ids[t] in score else 0.0

    @lru_cache
    def types(t: int, state: tuple[int, tuple[int, ...]] | None) -> list[float]:
        feature = prepared.feature_TQ[t].clone()
        can_go_on = state is None and bool(begun(t))
        kind = MentionState.BEGUN if can_go_on else MentionState.NONE
        if state is None and can_go_on:
            mass = sum(math.exp(base_TV[t, c]) for c in begun(t))
            feature[3] = math.log(mass + 1e-4) - math.log(1e-4)
        if state is not None:
            children = names_after(*state)
            can_go_on = bool(children)
            whole = any(name.ids == state[1] for name in tables.names.of(state[0]))
            kind = MentionState.ENDED if not can_go_on else MentionState.MAY_END if whole else MentionState.INSIDE
            feature[3] = 0
            if can_go_on:
                mass = sum(math.exp(base_TV[t, c]) for c in children)
                feature[3] = math.log(mass + 1e-4) - math.log(1e-4)
        with torch.no_grad():
            score = (score_T3[t] + heads.type_state_53[kind] + feature @ heads.type_features).tolist()
        legal = [True, any(link.end <= t for link in prepared.local.links), can_go_on]
        mass = [math.exp(s) if ok else 0.0 for s, ok in zip(score, legal, strict=True)]
        return [m / sum(mass) for m in mass]

    if tables.meanings is not None:
        encoder = tables.meanings.encoder
        for t in range(len(ids)):
            if types(t, None)[Type.RELATED] < LIKELY:
                continue
            [clause] = clause_texts(prepared.passage, prepared.local.links, [t])
            vector = torch.from_numpy(encoder.encode([clause])[0])
            for r in range(len(vector_RK)):
                names = tables.relations.names(r // 2)
                best = max(float(vector @ torch.from_numpy(encoder.encode([name])[0])) for name in names)
                with torch.no_grad():
                    relation_TR[t, r] += float(heads.similar[r % 2]) * best + heads.clause(vector) @ vector_RK[r]

    def tail_probs(t: int, p: int, r: int, tails: list[int]) -> list[float]:
        if not 1 < len(tails) <= 64:
            return [1 / len(tails)] * len(tails)
        features = tables.tails.of(prepared.local.mentioned.nodes[p], r)
        with torch.no_grad():
            weight = heads.tail_facts
            scores = []
            for tail in tails:
                [place] = np.flatnonzero(features.tail == tail)
                fact = torch.tensor([*features.value_NQ[place], 0.0]).float()
                begins = sum(math.exp(base_TV[t, child]) for child in names_after(tail, ()))
                score = float(weight @ fact) + float(heads.tail_base) * (math.log(begins + 1e-4) - math.log(1e-4))
                scores.append(score)
        return [math.exp(score) / sum(map(math.exp, scores)) for score in scores]

    @lru_cache
    def parents(t: int) -> list[float]:
        with torch.no_grad():
            place = prepared.places
            owned = [sorted(set(map(int, tables.graph.edges(n)[0]))) for n in prepared.local.mentioned.nodes]
            scores = []
            for p, relations in enumerate(owned):
                vector = vector_RK[relations].mean(0)
                weight = heads.places(g_TG[t])
                score = heads.query(g_TG[t]) @ vector / math.sqrt(heads.config.relation) + weight[place.bucket_TP[t, p]]
                score = score + weight[-2] * place.sentence_TP[t, p] + weight[-1] * place.subject_TP[t, p]
                scores.append(float(score) + float(place.log_p_TP[t, p]))
        mass = [math.exp(s) for s in scores]
        return [m / sum(mass) for m in mass]

    @lru_cache
    def relations(t: int, p: int) -> list[tuple[int, float, list[int]]]:
        """π(r | p) of each relation, with the tails that p has."""
        tails: dict[int, list[int]] = {}
        for relation, tail in zip(*tables.graph.edges(prepared.local.mentioned.nodes[p]), strict=True):
            tails.setdefault(int(relation), []).append(int(tail))
        with torch.no_grad():
            own = vector_RK[sorted(tails)].mean(0)
            fits = (vector_RK @ (heads.fits.weight @ own) / math.sqrt(heads.config.relation)).tolist()
        for r in range(tables.graph.relation_count, len(fits)):
            fits[r] += heads.config.outside
        scores = {
            r: float(relation_TR[t, r]) + (0.0 if r in tails else float(handicap_T[t]) + fits[r])
            for r in range(len(vector_RK))
            if r in tails or heads.config.missing
        }
        z = sum(map(math.exp, scores.values()))
        return [(r, math.exp(score) / z, tails.get(r, [])) for r, score in scores.items()]

    @lru_cache
    def total(t: int, state: tuple[int, tuple[int, ...]] | None) -> float:
        if t == len(ids):
            return 1.0
        p_3, plain = types(t, state), math.exp(base_TV[t, ids[t]])
        found = p_3[Type.PLAIN] * plain * total(t + 1, None)
        if state is None:
            found += p_3[Type.CONTINUE] * goes_on(t) * total(t + 1, None)
        elif p_3[Type.CONTINUE]:
            p = said(t, *state)
            found += p_3[Type.CONTINUE] * p * total(t + 1, (state[0], (*state[1], ids[t]))) if p else 0.0
        for p, pi in enumerate(parents(t)) if p_3[Type.RELATED] else ():
            for r, share, tails in relations(t, p):
                mass = p_3[Type.RELATED] * pi * share
                if not tails or len(tails) > prepared.max_tails:
                    found += mass * plain * total(t + 1, None)
                    continue
                for tail, share in zip(tails, tail_probs(t, p, r, tails), strict=True):
                    if q := said(t, tail, ()):
                        found += mass * share * q * total(t + 1, (tail, (ids[t],)))
        return found

    return math.log(total(0, None))


def _base(world: LetterWorld, ids: Sequence[int]) -> Tensor:
    """log p_B of every subword at each position."""
    fed = torch.tensor([[world.base.subwords.start, *ids]])
    with torch.no_grad():
        logits = world.base.model.logits(world.base.model.hidden(fed).last_BTD)[0]
    return logits[: len(ids)].double().log_softmax(-1)


@dataclass(frozen=True)
class Letters:
    """A text of letters in which each subword is a word."""

    world: LetterWorld
    passage: Passage
    begins_V: None = None

    def extended(self, id: int) -> Letters:
        return letters(self.world, [*self.passage.ids, id])


def letters(world: LetterWorld, ids: Sequence[int]) -> Letters:
    return Letters(world, world.passage(ids))
