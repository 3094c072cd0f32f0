"""Trained vectors of a graph's entities and relations, saved beside it, and vectors of nodes that were added later.

vectors = Vectors.load("world.kg").for_graph(graph)
vectors.entity_vectors([graph.number("Q76")])      # float32[1, D]
vectors.relation_RD[graph.find_relation("P26")]

They are saved in `KG.vectors/NUMBER/`, each directory complete or absent; the highest number is current. Rows of the
entity table: 0 all dates, 1 all quantities, 2 the mean vector (for entities without facts), then entities with facts.

Edits need no retraining. Trained vectors do not change. An untrained entity gets the mean over its facts, at unit
length: v_p + v_r for a fact (p, r, ·) of which it is the tail, v_e − v_r for a fact (·, r, e) of which it is the head.
A new relation gets the mean of v_e − v_p. These vectors are held beside the table, which is mapped and never copied.

Shapes: R rows, D dimensions, N requested nodes, L late nodes (untrained, or added after training).
"""

from __future__ import annotations

import hashlib
import sys
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
import numpy.typing as npt

from kglm.errors import DataError, VersionError
from kglm.files.artefact import Artefact, Writer
from kglm.files.records import Count, HexHash
from kglm.kg.arrays import IntArray, LongArray
from kglm.kg.compiled import CompiledGraph
from kglm.kg.embedding.triples import DATE, FIRST_ENTITY, MEAN, QUANTITY
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.literals.literal import is_date, is_literal
from kglm.kg.snapshots import newest, publish

FORMAT = 1
FILES = ("entity.npy", "relation.npy", "row_of_node.npy", "meta.json")
SUFFIX = ".vectors"
ATTEMPTS = 5
NODES_AT_ONCE = 4096
FloatArray = npt.NDArray[np.float32]


class GraphIdentity(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Identifies the training graph, also after later edits."""

    digest: HexHash
    generation: Count
    ids: HexHash
    """Hash of the ids of all nodes and relations, in order."""


class VectorsMeta(msgspec.Struct, frozen=True, kw_only=True):
    """How vectors were trained."""

    graph: GraphIdentity
    config: dict[str, int | float | str] = {}
    metrics: dict[str, float] = {}
    seconds: Annotated[float, msgspec.Meta(ge=0)] = 0.0


class _SavedMeta(VectorsMeta, frozen=True, kw_only=True):
    """Content of `meta.json`: how vectors were trained, and the shapes of their arrays."""

    format: int
    nodes: Count
    rows: Count
    relations: Count
    dim: Annotated[int, msgspec.Meta(ge=1, le=1 << 20)]


@dataclass(frozen=True, eq=False)
class Vectors:
    """Trained vectors. Look vectors up through `for_graph`, which includes edits."""

    entity_RD: FloatArray
    relation_RD: FloatArray
    """By relation index; zero for reflexive and for relations without facts."""
    row_of_node: IntArray
    meta: VectorsMeta
    artefact: Artefact | None = None
    """The directory they are mapped from."""

    @property
    def place(self) -> Path | None:
        return None if self.artefact is None else self.artefact.home

    @classmethod
    def load(cls, kg: str | Path, *, whole: bool = False) -> Vectors:
        """Map the vectors beside the graph file `kg`; with `whole`, every byte is checked (see `Artefact.check`)."""
        home = vectors_directory(kg)
        for _ in range(ATTEMPTS):  # another process may replace the directory meanwhile
            directory = newest(home)
            if directory is None:
                break
            try:
                return cls._open(directory, whole)
            except DataError:
                if newest(home) == directory:
                    raise
        raise DataError("has no vectors", place=kg, remedy=f"make them with: kglm kg embed {kg}")

    @classmethod
    def _open(cls, directory: Path, whole: bool) -> Vectors:
        again = f"train them again with: kglm kg embed {str(directory.parent).removesuffix(SUFFIX)}"
        artefact = Artefact.open(directory, again, FILES)
        if artefact.manifest is None:
            print(
                f"note: the vectors {directory} have no checksums, so damage would go unnoticed;"
                f" add them with: kglm doctor {str(directory.parent).removesuffix(SUFFIX)} --repair",
                file=sys.stderr,
            )
        meta = artefact.record("meta.json", _SavedMeta)
        if meta.format != FORMAT:
            raise VersionError(
                f"has vector format {meta.format}; this version of kglm reads format {FORMAT}",
                place=directory,
                remedy=again,
            )
        vectors = cls(
            artefact.array("entity", np.float32, 2),
            artefact.array("relation", np.float32, 2),
            artefact.array("row_of_node", np.int32, 1),
            meta,
            artefact,
        )
        vectors._check_shapes(meta, again)
        if whole:
            artefact.check()
        if whole or artefact.manifest is None:
            vectors.check_finite(again)
        return vectors

    def _check_shapes(self, meta: _SavedMeta, remedy: str) -> None:
        wanted = {
            "entity": (self.entity_RD, (meta.rows, meta.dim)),
            "relation": (self.relation_RD, (meta.relations, meta.dim)),
            "row_of_node": (self.row_of_node, (meta.nodes,)),
        }
        for name, (array, shape) in wanted.items():
            if array.shape != shape:
                what = f"{name} has shape {array.shape}, meta.json says {shape}"
                raise DataError(what, place=self.place, remedy=remedy)

    def check_finite(self, remedy: str) -> None:
        """Raise an error if a vector has an entry that is NaN or infinite, or a node has a row that does not exist."""
        for name, array in (("entity", self.entity_RD), ("relation", self.relation_RD)):
            flat = array.reshape(-1)
            if not np.isfinite(np.dot(flat, flat)) and not np.isfinite(array).all():  # the first test is the faster one
                row = int(np.flatnonzero(~np.isfinite(array).all(1))[0])
                raise DataError(f"row {row} of the {name} vectors is not finite", place=self.place, remedy=remedy)
        rows = self.row_of_node
        if len(rows) and not (rows.min() >= 0 and rows.max() < len(self.entity_RD)):
            raise DataError("a node has a row that does not exist", place=self.place, remedy=remedy)

    def save(self, kg: str | Path) -> Path:
        """Save the vectors beside the graph, atomically replacing older ones."""
        self.check_finite("use a lower learning rate")
        meta = _SavedMeta(
            **msgspec.structs.asdict(self.meta),
            format=FORMAT,
            nodes=len(self.row_of_node),
            rows=len(self.entity_RD),
            relations=len(self.relation_RD),
            dim=self.dim,
        )

        def write(writer: Writer) -> None:
            writer.array("entity", self.entity_RD)
            writer.array("relation", self.relation_RD)
            writer.array("row_of_node", self.row_of_node)
            writer.json("meta.json", meta)

        return publish(vectors_directory(kg), write)

    @property
    def dim(self) -> int:
        return int(self.entity_RD.shape[1])

    @cached_property
    def node_of_row(self) -> LongArray:
        """Node of each row from `FIRST_ENTITY` on."""
        return np.flatnonzero(self.row_of_node >= FIRST_ENTITY)

    @cached_property
    def _untrained_nodes(self) -> LongArray:
        return np.flatnonzero(self.row_of_node == MEAN)

    @cached_property
    def _trained_relation(self) -> npt.NDArray[np.bool_]:
        trained: npt.NDArray[np.bool_] = (self.relation_RD != 0).any(axis=1)
        trained[:2] = True  # reflexive is zero by definition
        return trained

    def for_graph(self, graph: KnowledgeGraph) -> GraphVectors:
        """Vectors of all nodes and relations of the graph in its current state."""
        self._check(graph)
        late_L, row_L = self._late_nodes(graph)
        start = GraphVectors(self, self.relation_RD, late_L, row_L, np.zeros((0, self.dim), np.float32))
        relation_RD = self._relations(graph, start)
        return self._induced(graph, GraphVectors(self, relation_RD, late_L, row_L, start.late_LD))

    def _check(self, graph: KnowledgeGraph) -> None:
        """Node numbers must mean the same ids. Edits only append nodes, so vectors of an earlier state fit too."""
        trained = self.meta.graph
        generation = trained.generation
        place = self.place or graph.store.path
        if graph.generation >= generation and graph.store.digest(generation) == trained.digest:
            return
        if len(graph) < len(self.row_of_node) or graph.relation_count < len(self.relation_RD):
            raise DataError(
                f"has vectors of {len(self.row_of_node)} nodes and {len(self.relation_RD)} relations, the graph has"
                f" {len(graph)} and {graph.relation_count}",
                place=place,
                remedy=f"refresh the graph, or train them again with: kglm kg embed {graph.store.path}",
            )
        if ids_digest(graph, len(self.row_of_node), len(self.relation_RD)) != trained.ids:
            raise DataError(
                "has vectors of another graph: its nodes have other ids",
                place=place,
                remedy=f"train them again with: kglm kg embed {graph.store.path}",
            )

    def _late_nodes(self, graph: KnowledgeGraph) -> tuple[LongArray, IntArray]:
        """Nodes whose row differs from `row_of_node`: new nodes, and entities that had no facts in training.

        Row −1 means that `_induced` has to find the vector.
        """
        trained, base, touched = len(self.row_of_node), graph.overlay.base, graph.overlay.touched
        old = self._untrained_nodes
        inside = np.minimum(old, len(base) - 1)
        with_facts = (base.edge_offsets[inside + 1] - base.edge_offsets[inside] > 1) & (old < len(base))
        with_facts |= np.isin(old, np.fromiter(touched, np.int64, len(touched)))
        new = np.arange(trained, len(graph))
        kinds = np.full(len(new), -1, np.int32)
        for place, node in enumerate(new.tolist()):
            if is_literal(id := graph.id(node)):
                kinds[place] = DATE if is_date(id) else QUANTITY
        old = old[with_facts]
        return np.concatenate([old, new]), np.concatenate([np.full(len(old), -1, np.int32), kinds])

    def _relations(self, graph: KnowledgeGraph, vectors: GraphVectors) -> FloatArray:
        """Relation table. An untrained relation gets the mean of v_e − v_p, its reverse the negative of it."""
        trained = np.zeros(graph.relation_count, np.bool_)
        trained[: len(self.relation_RD)] = self._trained_relation[: graph.relation_count]
        head, relation, tail = _facts_with(graph, ~trained, self.meta.graph.generation)
        if len(trained) == len(self.relation_RD) and not len(head):
            return self.relation_RD
        table_RD = np.zeros((len(trained), self.dim), np.float32)
        size = min(len(table_RD), len(self.relation_RD))
        table_RD[:size] = self.relation_RD[:size]
        p, e = vectors.rows(head), vectors.rows(tail)
        trained_ends = (p >= 0) & (p != MEAN) & (e >= 0) & (e != MEAN)
        for r in np.unique(relation[trained_ends]):
            facts = trained_ends & (relation == r)
            table_RD[r] = (self.entity_RD[e[facts]] - self.entity_RD[p[facts]]).mean(0)
            table_RD[r + 1] = -table_RD[r]
        return table_RD

    def _induced(self, graph: KnowledgeGraph, vectors: GraphVectors) -> GraphVectors:
        """Add vectors for the late nodes: first for neighbours of nodes with vectors, then for their neighbours."""
        row_L, late = vectors.late_row_L.copy(), [vectors.late_LD]
        count = 0
        while len(missing := np.flatnonzero(row_L == -1)):
            found = []
            for start in range(0, len(missing), NODES_AT_ONCE):
                places = missing[start : start + NODES_AT_ONCE]
                found_N, vector_ND = vectors.expected(graph, vectors.late_node_L[places])
                found.append(places[found_N])
                late.append(vector_ND[found_N])
            resolved = np.concatenate(found)
            if not len(resolved):
                break
            row_L[resolved] = len(self.entity_RD) + count + np.arange(len(resolved))
            count += len(resolved)
            vectors = GraphVectors(self, vectors.relation_RD, vectors.late_node_L, row_L.copy(), np.concatenate(late))
        row_L[row_L == -1] = MEAN
        return GraphVectors(self, vectors.relation_RD, vectors.late_node_L, row_L, vectors.late_LD)


@dataclass(frozen=True, eq=False)
class GraphVectors:
    """Vectors of every node and relation for one state of a graph."""

    trained: Vectors
    relation_RD: FloatArray
    """By relation index of the graph."""
    late_node_L: LongArray
    """Nodes whose row differs from the trained table, sorted."""
    late_row_L: IntArray
    late_LD: FloatArray
    """Vectors of the rows that follow those of `entity_RD`."""

    @property
    def dim(self) -> int:
        return self.trained.dim

    @property
    def entity_RD(self) -> FloatArray:
        """The mapped trained table; rows beyond its length are in `late_LD`."""
        return self.trained.entity_RD

    def rows(self, numbers: npt.ArrayLike) -> IntArray:
        """Row of each node."""
        nodes, trained = np.asarray(numbers, np.int64), self.trained.row_of_node
        rows = np.where(nodes < len(trained), trained[np.minimum(nodes, len(trained) - 1)], np.int32(MEAN))
        if len(self.late_node_L):
            place = np.minimum(np.searchsorted(self.late_node_L, nodes), len(self.late_node_L) - 1)
            rows = np.where(self.late_node_L[place] == nodes, self.late_row_L[place], rows)
        return rows

    def entity_vectors(self, numbers: npt.ArrayLike) -> FloatArray:
        """float32[N, D]: the vector of each node."""
        return self.row_vectors(self.rows(numbers))

    def row_vectors(self, row_N: IntArray) -> FloatArray:
        late_N = row_N >= len(self.entity_RD)
        vector_ND = self.entity_RD[np.where(late_N, MEAN, row_N)]
        if late_N.any():
            vector_ND[late_N] = self.late_LD[row_N[late_N] - len(self.entity_RD)]
        return vector_ND

    def expected(self, graph: KnowledgeGraph, nodes: LongArray) -> tuple[npt.NDArray[np.bool_], FloatArray]:
        """Mask of nodes with usable facts, and the normalised sum of v_p + v_r and v_e − v_r over those facts."""
        offsets, relation, tail = graph.edges_of(nodes)
        owner = np.repeat(np.arange(len(nodes)), np.diff(offsets))
        row = self.rows(tail)
        use = (relation > 1) & (row >= 0) & (row != MEAN)
        owner, relation, row = owner[use], relation[use], row[use]
        # an edge (node, r, e) gives v_e − v_r; an edge (node, reverse of r, p) gives v_p + v_r
        sign = np.where(relation % 2, 1, -1).astype(np.float32)[:, None]
        estimate = self.row_vectors(row) + sign * self.relation_RD[relation & ~1]
        owners, start = np.unique(owner, return_index=True)
        vector_ND = np.zeros((len(nodes), self.dim), np.float32)
        if len(owners):
            vector_ND[owners] = np.add.reduceat(estimate, start)
        norm_N = np.linalg.norm(vector_ND, axis=1)
        vector_ND[norm_N > 0] /= norm_N[norm_N > 0, None]
        return norm_N > 0, vector_ND


def _facts_with(
    graph: KnowledgeGraph, relations: npt.NDArray[np.bool_], generation: int
) -> tuple[LongArray, IntArray, IntArray]:
    """Forward facts of the masked relations, none of which had a fact at `generation`."""
    base, overlay = graph.overlay.base, graph.overlay
    touched = np.fromiter(overlay.touched, np.int64, len(overlay.touched))
    offsets, relation, tail = graph.edges_of(touched)
    head = np.repeat(touched, np.diff(offsets))
    if base.generation > generation:
        late = np.flatnonzero(relations[base.edge_relation])
        heads = np.searchsorted(base.edge_offsets, late, side="right") - 1
        late, heads = late[stay := ~np.isin(heads, touched)], heads[stay]
        head = np.concatenate([head, heads])
        relation = np.concatenate([relation, base.edge_relation[late]])
        tail = np.concatenate([tail, base.edge_tail[late]])
    wanted = relations[relation] & (relation % 2 == 0)
    return head[wanted], relation[wanted], tail[wanted]


def vectors_directory(kg: str | Path) -> Path:
    return Path(f"{kg}{SUFFIX}")


def graph_identity(graph: KnowledgeGraph) -> GraphIdentity:
    """Identify the graph that vectors are trained on."""
    return GraphIdentity(
        graph.store.digest(graph.generation), graph.generation, ids_digest(graph, len(graph), graph.relation_count)
    )


def ids_digest(graph: KnowledgeGraph, nodes: int, relations: int) -> str:
    """Hash of the ids of the first `nodes` nodes and `relations` relation indices, in order."""
    base, overlay = graph.overlay.base, graph.overlay
    inside = min(nodes, len(base))
    late = [id.encode() for id in overlay.ids[: nodes - inside]]
    of_bytes, length_N = _stored_ids(base, inside)
    lengths = np.concatenate([length_N, np.array([len(id) for id in late], np.int64)])
    digest = of_bytes.copy()
    for part in (*late, lengths.tobytes(), "\n".join(overlay.relations[: relations // 2]).encode()):
        digest.update(part)
    return str(digest.hexdigest())


@lru_cache(4)  # the forks of a graph share its arrays
def _stored_ids(base: CompiledGraph, count: int) -> tuple[Any, LongArray]:
    """Hash of the first `count` ids of the arrays, and their lengths in bytes."""
    stored = base.id_bytes[: base.id_offsets[count]].tobytes()
    return hashlib.blake2b(stored, digest_size=8), np.diff(base.id_offsets[: count + 1])
