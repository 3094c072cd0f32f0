"""Pad a trained run with zeros to a larger size: it computes the same values at the cost of the larger size.

The cost of an estimator depends on the annotations it samples, and these on the model: with random weights it samples a
thousand entities where a trained model samples ten. Training at the paper's size takes days without a GPU; padding a
small trained model takes seconds. Added units have zero weights. An added layer copies its input: input and output
gates are open, the forget gate is closed, and values are scaled down on the way in and up on the way out, because tanh
is the identity near zero. (A helper module of marginal.py.)
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from kglm.kg.embedding.vectors import Vectors
from kglm.kg.graph import KnowledgeGraph
from kglm.model.encoders.awd_lstm import EncoderConfig
from kglm.runs.run import Run

SMALL = 0.01
"""Factor by which an added layer scales its input down."""
OPEN = 20.0
"""Bias of an open gate; minus this, of a closed one."""


def widened_graph(kg: Path, size: int, home: Path) -> KnowledgeGraph:
    """Copy a graph and pad its vectors with zeros to `size` dimensions."""
    copy = home / kg.name
    shutil.copy(kg, copy)
    vectors = Vectors.load(kg)
    more = ((0, 0), (0, size - vectors.dim))
    wider = replace(vectors, entity_RD=np.pad(vectors.entity_RD, more), relation_RD=np.pad(vectors.relation_RD, more))
    wider.save(copy)
    return KnowledgeGraph.open(copy)


def widened(run: Run, graph: KnowledgeGraph, encoder: EncoderConfig) -> Run:
    """Copy of a run with a larger encoder, for a graph with padded vectors."""
    narrow, settings = run.settings.encoder, replace(run.settings, encoder=encoder)
    wide = Run(run.home, settings, run.vocabulary, graph, run.introductions)
    small, large = (each.features.vectors for each in (run, wide))
    assert small is not None and large is not None
    word, entity, hidden = range(narrow.embedding), range(small.dim), range(narrow.hidden)
    ends = [encoder.embedding, encoder.embedding + large.dim]
    both = [*word, *(ends[0] + place for place in entity)]
    output = [*both, *(ends[1] + place for place in entity)]
    places: dict[str, tuple[Sequence[int] | None, ...]] = {"renderer.projection.weight": (None, both)}
    parameters = dict(wide.model.named_parameters())
    with torch.no_grad():
        for name, old in run.model.named_parameters():
            if name.startswith("encoder.layers."):
                continue
            if name.startswith("renderer.alias_lstm."):
                _put_gates(parameters[name], old, word, word)
            else:
                _put(parameters[name], old, places.get(name, (None,) * old.dim()))
        layers, last = narrow.layers, encoder.layers - 1
        for layer in range(encoder.layers):
            source = layers - 1 if layer == last else layer
            passes_on = layer >= layers - 1 and layer != last
            inputs: Sequence[int] = word if layer == 0 else hidden
            outputs: Sequence[int] = output if layer == last else hidden
            for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
                new = parameters[f"encoder.layers.{layer}.{part}"]
                if passes_on:
                    _pass_on(new, part, len(hidden))
                    continue
                old = run.model.get_parameter(f"encoder.layers.{source}.{part}")
                _put_gates(new, old, outputs, outputs if part == "weight_hh" else inputs)
            if layer == last and encoder.layers > layers:
                parameters[f"encoder.layers.{layer}.weight_ih"].div_(SMALL ** (encoder.layers - layers))
    wide.model.eval()
    return wide


def _put(new: Tensor, old: Tensor, places: Sequence[Sequence[int] | None]) -> None:
    """Set a tensor to zero except for the old values, at the given indices of each axis; None: at the first ones."""
    axes = [range(size) if place is None else place for place, size in zip(places, old.shape, strict=True)]
    new.zero_()
    new[np.ix_(*axes)] = old


def _put_gates(new: Tensor, old: Tensor, units: Sequence[int], inputs: Sequence[int]) -> None:
    """The same as `_put` for weights of an LSTM, whose first axis is four gates × units."""
    wide = torch.zeros_like(new).view(4, -1, *new.shape[1:])
    _put(wide, old.view(4, -1, *old.shape[1:]), (range(4), units, inputs)[: old.dim() + 1])
    new.copy_(wide.view(new.shape))


def _pass_on(new: Tensor, part: str, units: int) -> None:
    """Make a layer copy its input, scaled down; the order of gates is input, forget, cell, output."""
    new.zero_()
    gates = new.view(4, -1, *new.shape[1:])
    if part == "bias_ih":
        gates[0], gates[1], gates[3] = OPEN, -OPEN, OPEN
    elif part == "weight_ih":
        gates[2, range(units), range(units)] = SMALL
