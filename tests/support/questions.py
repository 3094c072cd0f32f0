"""A pretrained model of English bytes with heads that follow the words of the text: cues name the relation."""

from __future__ import annotations

from pathlib import Path

import torch

from kglm.answer.pretrained.model import PretrainedLM
from kglm.files.artefact import new_artefact
from kglm.heads.keys import key_size
from kglm.heads.meanings import Known
from kglm.heads.model import Heads, Type
from kglm.heads.options import HeadsConfig
from kglm.heads.store import write_heads
from kglm.pretrained.base import BaseModel
from support.causal import save_english
from support.worlds import BORN, make_store

FACTS = (
    ("Q76", "P569", BORN),
    ("Q76", "P26", "Q13133"),
    ("Q76", "P40", "Q1"),
    ("Q76", "P40", "Q2"),
    ("Q13133", "P569", "T::11::+1964-01-17T00:00:00Z"),
    ("Q3", "P108", "Q76"),
    ("Q4", "P19", "Q5"),
)
NAMES = {
    "Q76": ("Barack Obama", "Obama"),
    "Q13133": ("Michelle Obama",),
    "Q1": ("Malia Obama",),
    "Q2": ("Sasha Obama",),
    "Q3": ("Nora Feld",),
    "Q4": ("Ada Lumen",),
    "Q5": ("Honolulu",),
    "P26": ("spouse", "married to"),
    "P569": ("date of birth", "born on"),
    "P40": ("child",),
    "P108": ("works for",),
    "P19": ("place of birth",),
}
KNOWN = (Known("P2067", ("mass", "weight")),)


def save_heads(home: Path, *, max_tails: int = 100) -> Path:
    """A run of heads in `home`/heads and a graph `home`/toy.kg; the base is in `home`/base."""
    base = BaseModel.open(save_english(home / "base", context=256, chat=True), dtype=torch.float32)
    make_store(home, FACTS, NAMES)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        heads = Heads(HeadsConfig(state=8, relation=4, max_tails=max_tails), base.model.config.hidden, key_size(base))
    with torch.no_grad():
        for linear in (heads.asked, heads.query, heads.clause, heads.types):
            linear.weight.zero_()
            if linear.bias is not None:
                linear.bias.zero_()
        heads.cue.copy_(torch.tensor([6.0, 4.0, 0.0, 4.0, 2.0, 0.0]))
        heads.tail_base.zero_()
        heads.handicap.bias.fill_(-1.0)
        heads.types.bias[Type.RELATED] = 4.0
    with new_artefact(home / "heads") as writer:
        write_heads(writer, heads, base, known=KNOWN)
    return home / "heads"


def open_heads(home: Path) -> PretrainedLM:
    """The model of `save_heads`, opened as a user does."""
    return PretrainedLM.open(home / "heads", kg=home / "toy.kg", base=home / "base")
