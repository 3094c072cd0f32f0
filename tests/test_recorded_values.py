"""Losses, estimates and completions equal recorded values.

    python tests/test_recorded_values.py        # overwrites tests/recorded_values.json: only for an intended change

All values are computed in double precision, so that they hold on every machine, up to 1e-9 for other orders of sums.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from kglm import bundled
from kglm.answer.generate import GenerateConfig
from kglm.answer.model import FactAwareLM
from kglm.marginal.cache import Cache
from kglm.marginal.candidates import prepare_text
from kglm.marginal.estimate import MarginalConfig, log_marginal, log_marginal_tracked
from kglm.marginal.prepared_text import AllEntities, PreparedText, read
from kglm.model.text import hidden_states
from kglm.text.document import START, Document, read_documents
from kglm.train.chunks import whole
from support.toys import OPTIONS, Some, make_toy, random_documents
from support.trainers import CONFIG, trainer

RECORDED = Path(__file__).parent / "recorded_values.json"
MODELS = ("model", "proposal", "plain", "tracker", "tracker_proposal")
TEXTS = (["Mario", "is", "Boy", "1989", "Land"], ["Game", "Boy", "Tennis", "Mario"])
PROMPTS = (
    "Barack Obama was born on",
    "The capital of France is",
    "Michelle Obama is married to",
    "Hamlet was written by William",
    "Marie Curie was born in Warsaw. She was born on",
    "Super Mario Land was developed by",
    "Paris is the capital of",
    "The weather is",
)


def losses(home: Path) -> Iterator[tuple[str, Any]]:
    """Joint log-likelihoods of toy documents by component, and gradients of a training step."""
    for name, options in OPTIONS.items():
        toy = make_toy(home / name, **options)
        documents = random_documents(toy, 9)
        for which in MODELS:
            if which.startswith("tracker") and toy.history.facts != "none":
                continue
            model = getattr(toy, which)
            chunk = toy.builder.build([whole(toy.encoder.encode(each)) for each in documents], ahead=model.ahead)
            with torch.no_grad():
                scores = model.score(chunk)
            components = ("type_BT", "new_BT", "parent_BT", "relation_BT", "word_BT")
            for component in components:
                yield f"{name} / {which} / {component}", getattr(scores, component).sum(1).tolist()
            model.train()
            torch.autograd.backward(-model.score(chunk, generator=torch.Generator().manual_seed(5)).total_BT.sum())
            gradients = {key: p.grad for key, p in model.named_parameters() if p.grad is not None}
            yield f"{name} / {which} / gradient", float(sum(g.abs().sum() for g in gradients.values()))
            model.eval()


def trained(home: Path) -> Iterator[tuple[str, Any]]:
    """Metrics of short training runs."""
    for which in MODELS:
        for average in ("none", "ema"):
            config = replace(CONFIG, average=average)
            for record in trainer(home / which / average, config, model=which).fit():
                values = {part: list(record[part].values()) for part in ("train", "valid")}
                yield f"{which}, {average}, epoch {record['epoch']}", values


def estimates(home: Path) -> Iterator[tuple[str, Any]]:
    """log p(x) of toy texts by every method."""
    for name, options in OPTIONS.items():
        toy = make_toy(home / name, **options)
        for number, words in enumerate(TEXTS):
            document = Document("t", [START, *words])
            for method in ("importance", "particle", "beam", "exact"):
                candidates = Some(0, 1) if method == "particle" else AllEntities(len(toy.graph))
                for cache in (Cache(), Cache(0.2)):
                    prepared = PreparedText(toy, toy.model, document, candidates, cache)
                    config = MarginalConfig(method, 6, seed=3)  # type: ignore[arg-type]
                    found = log_marginal(prepared, config, proposal=toy.proposal)
                    yield f"{name} / {number} / {method} / {cache.share}", [found.log_p, found.upp_log_p, found.ess]
            if toy.history.facts == "none":
                for method in ("importance", "particle"):
                    config = MarginalConfig(method, 6, seed=3)  # type: ignore[arg-type]
                    text = read(toy, document)
                    found = log_marginal_tracked(text, toy.tracker, toy.tracker_proposal, config, 5)
                    yield f"{name} / {number} / tracked {method}", [found.log_p, found.upp_log_p, found.ess]


def answers(home: Path) -> Iterator[tuple[str, Any]]:
    """Completions, generated texts and estimates of the bundled model."""
    del home
    live = FactAwareLM.open(bundled.RUN)
    live.model.double()
    edited = live.edited(["Barack Obama | date of birth | 21 March 2013", "France | capital | Lyon"])
    for title, model in (("as it is", live), ("edited", edited)):
        for prompt in PROMPTS:
            found = model.complete(prompt, top=8)
            yield (
                f"{title}: {prompt}",
                {
                    "words": [word.word for word in found.words],
                    "p": [word.p for word in found.words],
                    "reasons": [str(word.reasons[0]) for word in found.words],
                    "shares": [word.reasons[0].p for word in found.words],
                    "rest": list(found.rest.values()),
                    "mentions": [[each.start, each.end, each.id, each.p] for each in found.mentions],
                },
            )
    sampled = live.complete(PROMPTS[0], links="sampled", seed=2)
    yield "sampled links", {"p": [word.p for word in sampled.words], "mentions": [m.p for m in sampled.mentions]}
    for config in (GenerateConfig(words=12, seed=4), GenerateConfig(words=8, beam=3), GenerateConfig(8, 0.0)):
        generated = list(live.generate("France is", config=config))
        yield f"generated with {config}", {"words": [g.word for g in generated], "p": [g.p for g in generated]}
    for document in list(read_documents(bundled.ARTICLES))[:2]:
        prepared = prepare_text(live.run, live.model, document, live.linker.names)
        for method in ("particle", "beam"):
            found_p = log_marginal(prepared, MarginalConfig(method, 5))  # type: ignore[arg-type]
            yield f"{document.title} / {method}", [found_p.log_p, found_p.upp_log_p]
        h_TD = hidden_states(live.model, prepared.text)
        yield f"{document.title} / hidden states", [float(h_TD.detach().abs().sum()), float(h_TD.detach()[-1].sum())]


PARTS: dict[str, Callable[[Path], Iterator[tuple[str, Any]]]] = {
    "losses": losses,
    "trained": trained,
    "estimates": estimates,
    "answers": answers,
}


def computed(part: str, home: Path) -> dict[str, Any]:
    return dict(PARTS[part](home))


def assert_same(found: Any, recorded: Any, place: str) -> None:
    """Compare numbers to 1e-9, everything else exactly."""
    if isinstance(recorded, dict):
        assert found.keys() == recorded.keys(), place
        for key, value in recorded.items():
            assert_same(found[key], value, f"{place} / {key}")
    elif isinstance(recorded, list):
        assert len(found) == len(recorded), place
        for number, (left, right) in enumerate(zip(found, recorded, strict=True)):
            assert_same(left, right, f"{place} / {number}")
    elif isinstance(recorded, float):
        np.testing.assert_allclose(found, recorded, rtol=1e-9, atol=1e-12, err_msg=place)
    else:
        assert found == recorded, place


@pytest.mark.parametrize("part", PARTS)
def test_values_equal_the_recorded_ones(part: str, tmp_path: Path, one_thread: None) -> None:
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))[part]
    found = json.loads(json.dumps(computed(part, tmp_path)))
    assert_same(found, recorded, part)


if __name__ == "__main__":
    import tempfile

    torch.set_num_threads(1)
    to = Path(sys.argv[1]) if len(sys.argv) > 1 else RECORDED
    with tempfile.TemporaryDirectory() as scratch:
        values = {part: computed(part, Path(scratch) / part) for part in PARTS}
    to.write_text(json.dumps(values, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
