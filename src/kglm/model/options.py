"""Options of the latent variables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kglm.errors import ConfigError

Facts = Literal["all", "topic", "none"]
"""Parents of related mentions: all entities mentioned so far (KGLM), only the given topic (NKLM), or none
(EntityCopyNet)."""
MentionTypes = Literal["continue", "paper"]
"""Whether further words of a mention have the type `continue`, or each word is drawn by itself, as in the paper."""
Marginal = Literal["annotated", "all", "entity"]
"""Explanations that the probability of a mention sums over: the facts that the annotation lists (the paper), all facts
of the local graph, or all facts and `new`."""


@dataclass(frozen=True)
class LatentConfig:
    """Options of the latent variables and of entity words. The default is the preset `best`; `PAPER` has none."""

    facts: Facts = "all"
    """Parents of related mentions: all entities mentioned before, only the given topic (NKLM), none (EntityCopyNet)."""
    marginal: Marginal = "entity"
    """Explanations of a mention that are summed: annotated (the paper), all facts, or entity (all facts and new)."""
    type_features: bool = True
    """Features for the type: inside a mention or not, whether an alias can go on, distance to the last mention."""
    type_cues: bool = True
    """Features for the type: whether the preceding words name a relation, which makes a mention more likely."""
    recency_bias: bool = True
    """Learn how the probability of a parent falls with the distance to its last mention."""
    subject_bias: bool = True
    """Learn how much more likely the article's subject is a parent."""
    sentence_bias: bool = True
    """Learn how much more likely a parent is if the same sentence mentions it."""
    uniform_share: float = 0.05
    """Uniform share of the distribution of new entities: each has at least share / (number of entities)."""
    entity_bias: bool = False
    """Add a learned bias b_e to the score of each new entity."""
    frequency_bias: bool = True
    """Learn how the score of a new entity rises with the number of other documents that introduce it."""
    relation_text: bool = True
    """Compute v_r also from the words of the relation's name."""
    tail_scores: bool = True
    """Choose among several tails of a relation by the text; otherwise uniformly."""
    tail_facts: bool = True
    """Choose among several tails by their rank, times and place in the graph: see `kg.tail_features`."""
    cues: bool = True
    """Raise the score of a relation that the preceding words name, and of a tail of a kind that they name."""
    alias_order: bool = True
    """Learn to copy the words of a name in order, from the first word at the start of a mention."""
    train_relations: bool = True
    """Train v_r, starting from TransE; otherwise v_r is fixed."""
    missing: bool = True
    """Let the text ask for relations that a parent lacks; otherwise for those that it has, as in the paper."""

    @property
    def offers_missing(self) -> bool:
        """True if a text may ask for facts that the graph lacks."""
        return self.missing and self.facts != "none"

    @property
    def reads_cues(self) -> bool:
        """True if the words before a mention are searched for names of relations and kinds, and for years."""
        return self.cues or self.type_cues or self.tail_facts

    def __post_init__(self) -> None:
        if not 0 <= self.uniform_share < 1:
            raise ConfigError(f"latent.uniform_share = {self.uniform_share}", remedy="give at least 0 and below 1")


PAPER = LatentConfig(
    marginal="annotated",
    type_features=False,
    type_cues=False,
    recency_bias=False,
    subject_bias=False,
    sentence_bias=False,
    uniform_share=0.0,
    entity_bias=False,
    frequency_bias=False,
    relation_text=False,
    tail_scores=False,
    tail_facts=False,
    cues=False,
    alias_order=False,
    train_relations=False,
    missing=False,
)
