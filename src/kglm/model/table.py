"""The table of models: what each is called, how it is built, what it needs and how it is scored.

A new model is one module and one entry in `MODELS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, NamedTuple

from torch import Generator

from kglm.errors import ConfigError
from kglm.model.awd_lstm import AwdLstm
from kglm.model.base import ChunkModel, KglmConfig, LatentModel
from kglm.model.encoders.awd_lstm import EncoderConfig
from kglm.model.entity_nlm import EntityNlm, EntityNlmProposal
from kglm.model.graph_features import GraphFeatures
from kglm.model.kglm import Kglm
from kglm.model.options import Facts, LatentConfig
from kglm.model.proposal import Proposal

Likelihood = Literal["words", "latent", "tracked", "none"]
"""How p(x) is found: as the product of word probabilities; by a sum over mentions and facts; by a sum over tracked
entities; or not at all, for a proposal."""
Mode = Literal["oracle", "linked", "shortlist", "plain"]
"""How a prompt is completed: with the subject given, linked, or from a shortlist; or as plain words."""


class ModelParts(NamedTuple):
    """What models are built from."""

    encoder: EncoderConfig
    latent: LatentConfig
    vocabulary_size: int
    features: GraphFeatures


@dataclass(frozen=True)
class ModelKind:
    """One entry of the table."""

    name: str
    title: str
    """Name in tables for people."""
    build: Callable[[ModelParts, Generator], ChunkModel]
    likelihood: Likelihood
    uses_vectors: bool = False
    """True if the model scores entities by their vectors; then the settings [latent] apply."""
    facts: Facts | None = None
    """The one value of `latent.facts` that the model has; None if any will do."""
    methods: tuple[str, ...] = ()
    """Accepted methods to estimate p(x); with the likelihood `words` all give the same exact value."""
    proposal: str | None = None
    """Name of the model that annotations are drawn from."""
    drawn: tuple[str, ...] = ()
    """Methods that draw from the proposal."""
    modes: tuple[Mode, ...] = ()
    """Ways to complete a prompt; empty if it completes none."""
    reads_stream: bool = False
    """True if it can be trained on all documents as one stream."""
    caches: bool = False
    """True if a cache can be mixed into its words."""
    adapts: bool = False
    """True if its weights can follow the text (dynamic evaluation)."""
    any_mention_types: bool = True
    """False if `data.mention_types` must be "continue"."""


METHODS = ("importance", "particle", "beam", "exact", "annotated")


@contextmanager
def _enough_memory(parts: ModelParts) -> Iterator[None]:
    """Raise an error that names the sizes if the weights do not fit into memory."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "memory" not in str(error):
            raise
        encoder = parts.encoder
        sizes = f"embedding {encoder.embedding}, hidden {encoder.hidden}, {encoder.layers} layers"
        what = f"an encoder with {sizes} and {parts.vocabulary_size} words does not fit into memory"
        raise ConfigError(what, remedy="use smaller sizes") from error


def _with_vectors(model: type[LatentModel]) -> Callable[[ModelParts, Generator], ChunkModel]:
    def build(parts: ModelParts, generator: Generator) -> ChunkModel:
        config = KglmConfig(parts.encoder, parts.latent)
        with _enough_memory(parts):
            return model(config, parts.vocabulary_size, parts.features, generator=generator)

    return build


def _of_words(model: type[AwdLstm | EntityNlm]) -> Callable[[ModelParts, Generator], ChunkModel]:
    def build(parts: ModelParts, generator: Generator) -> ChunkModel:
        with _enough_memory(parts):
            return model(parts.encoder, parts.vocabulary_size, generator=generator)

    return build


_PROMPT_MODES: tuple[Mode, ...] = ("oracle", "linked", "shortlist")
_LATENT = {"methods": METHODS, "proposal": "proposal", "drawn": ("importance",), "caches": True}
MODELS: dict[str, ModelKind] = {
    kind.name: kind
    for kind in (
        ModelKind("kglm", "KGLM", _with_vectors(Kglm), "latent", True, modes=_PROMPT_MODES, **_LATENT),  # type: ignore[arg-type]
        ModelKind("proposal", "proposal", _with_vectors(Proposal), "none", True),
        ModelKind(
            "entity-copynet",
            "EntityCopyNet",
            _with_vectors(Kglm),
            "latent",
            True,
            "none",
            modes=_PROMPT_MODES,
            **_LATENT,  # type: ignore[arg-type]
        ),
        ModelKind(
            "entity-nlm",
            "EntityNLM",
            _of_words(EntityNlm),
            "tracked",
            facts="none",
            methods=("importance", "particle", "annotated"),
            proposal="entity-nlm-proposal",
            drawn=("importance", "particle"),
            any_mention_types=False,
        ),
        ModelKind(
            "entity-nlm-proposal",
            "proposal of EntityNLM",
            _of_words(EntityNlmProposal),
            "none",
            facts="none",
            any_mention_types=False,
        ),
        ModelKind(
            "awd-lstm",
            "AWD-LSTM",
            _of_words(AwdLstm),
            "words",
            methods=METHODS,
            modes=("plain",),
            reads_stream=True,
            caches=True,
            adapts=True,
        ),
    )
}
