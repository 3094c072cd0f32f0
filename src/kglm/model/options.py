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
"""Over which ways to reach an entity a mention's probability is summed: the facts that the annotation lists (the
paper), all facts of the local graph, or all of these and `new` too."""


@dataclass(frozen=True)
class LatentConfig:
    """Options of the latent variables, and of what they say; by default `best`. `PAPER` has no refinement."""

    facts: Facts = "all"
    """Whose facts lead to mentions: all (who were mentioned), topic (given: NKLM), none (EntityCopyNet)."""
    marginal: Marginal = "entity"
    """Which explanations of a mention are summed: annotated (the paper), all facts, or entity (new as well)."""
    type_features: bool = True
    """Let the type see the mention state: inside a mention or not, what the aliases allow next, how long since one."""
    type_cues: bool = True
    """Let the type see whether the words before name a relation, whichever: then what it leads to is due."""
    recency_bias: bool = True
    """Learn how the chance of a parent falls with the distance to its last mention."""
    subject_bias: bool = True
    """Learn how much more likely the article's subject is a parent."""
    sentence_bias: bool = True
    """Learn how much more likely a parent is that the same sentence has mentioned."""
    uniform_share: float = 0.05
    """Share of a new entity's probability that is spread evenly: no entity is rarer than share / |E|."""
    entity_bias: bool = False
    """Add a learned bias b_e to the score of each new entity."""
    frequency_bias: bool = True
    """Learn how the score of a new entity rises with the number of other documents that introduce it."""
    relation_text: bool = True
    """Let v_r see the words of the relation's name."""
    tail_scores: bool = True
    """Choose among several tails of a relation by the text; otherwise each is as likely."""
    cues: bool = True
    """Let words before a mention speak for a relation that they name, and for a tail of the kind that they name."""
    alias_order: bool = True
    """Learn how much more likely the next word of a name is copied: the first at the start of a mention, and so on."""
    train_relations: bool = True
    """Train v_r from where TransE left it; otherwise it stays."""

    @property
    def reads_cues(self) -> bool:
        """True if the words before a mention are searched for names of relations and kinds."""
        return self.cues or self.type_cues

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
    cues=False,
    alias_order=False,
    train_relations=False,
)
