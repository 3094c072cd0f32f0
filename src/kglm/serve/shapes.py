"""The typed bodies of requests and answers: what `/openapi.json` says is what is checked and sent."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

MAX_TEXT, MAX_WORDS = 20_000, 1_000
"""Of a prompt: characters, and words after it is cut."""
MAX_ARTICLE = 20_000
"""Characters of a text to annotate."""
MAX_SPANS = 200

Text = Annotated[str, StringConstraints(max_length=MAX_TEXT)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=300)]
P = Annotated[float, Field(description="A probability.")]


class _Asked(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class _Told(BaseModel):
    model_config = ConfigDict(allow_inf_nan=False)


# What is asked


class SpanGiven(_Asked):
    """Words [start, end) of the prompt name this entity."""

    start: Annotated[int, Field(ge=0, le=MAX_WORDS)]
    end: Annotated[int, Field(ge=0, le=MAX_WORDS)]
    id: Name


class LinkAsked(_Asked):
    """A text, and who is known to be named in it."""

    text: Text
    entities: Annotated[list[SpanGiven], Field(max_length=MAX_SPANS)] = []


class Prompt(LinkAsked):
    """A text to go on with. `links`: names of which nothing is said are linked in every likely way, in the most likely
    one, or are plain words."""

    links: Literal["average", "best", "none"] = "average"


class CompleteAsked(Prompt):
    """How many words, and how many reasons for each."""

    top: Annotated[int, Field(ge=1, le=50)] = 10
    reasons: Annotated[int, Field(ge=0, le=20)] = 5


class GenerateAsked(Prompt):
    """How to go on. With a `beam` nothing is drawn; 1 is greedy."""

    words: Annotated[int, Field(ge=1, le=200)] = 40
    temperature: Annotated[float, Field(ge=0, le=2)] = 0.7
    top_p: Annotated[float, Field(gt=0, le=1)] = 0.9
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 0
    beam: Annotated[int, Field(ge=0, le=8)] = 0


class AnnotateAsked(_Asked):
    """A text to be linked whole, and the title of whom it is about."""

    text: Annotated[str, StringConstraints(max_length=MAX_ARTICLE)]
    title: Annotated[str, StringConstraints(max_length=300)] = ""


class EditAsked(_Asked):
    """A fact by ids or by names, to be added, removed, or made the only one of its head and relation."""

    action: Literal["set", "add", "remove"]
    head: Name
    relation: Name
    tail: Name


# What is told


class ErrorTold(_Told):
    """A short code for programs, one line for people."""

    code: str
    message: str


class Refusal(_Told):
    """Why a request is not answered."""

    error: ErrorTold


class Relation(_Told):
    id: str
    label: str


class Entity(_Told):
    """`literal`: a date or quantity."""

    id: str
    label: str
    literal: bool


class MentionTold(_Told):
    """Words [start, end) of the prompt refer to this entity with probability p; an ambiguous name has several entries."""

    start: int
    end: int
    text: str
    id: str
    label: str
    p: P


class ReasonTold(_Told):
    """One way to a word and its share of the word's probability: ids, with labels for people."""

    p: P
    type: Literal["none", "new", "related", "continue"]
    parent: str | None
    parent_label: str | None
    relation: str | None
    relation_label: str | None
    entity: str | None
    entity_label: str | None
    copied: bool
    text: str


class Further(_Told):
    """Reasons that are not listed."""

    count: int
    p: P


class NextWord(_Told):
    word: str
    p: P
    reasons: list[ReasonTold]
    further_reasons: Further


class Rest(_Told):
    """Probability that was not enumerated: of less probable new entities and related facts."""

    new: P
    related: P


class Completed(_Told):
    """The prompt as words, and the most probable next words."""

    prompt: list[str]
    words: list[NextWord]
    rest: Rest
    mentions: list[MentionTold]


class LinkedTold(_Told):
    prompt: list[str]
    mentions: list[MentionTold]


class Node(_Told):
    """`p` of who is mentioned: that it is the one; of a candidate: that the next word is of it."""

    id: str
    label: str
    literal: bool
    kind: Literal["mentioned", "candidate"]
    p: P


class Edge(_Told):
    """A fact that the next word may come by, with that probability."""

    parent: str
    relation: Relation
    entity: str
    p: P


class LocalGraph(_Told):
    nodes: list[Node]
    edges: list[Edge]
    left_out: int


class Explanation(_Told):
    parent: Entity
    relation: Relation


class DocumentMention(_Told):
    """`start` and `end` count the words of all sentences."""

    start: int
    end: int
    entity: Entity
    source: str
    reasons: list[Explanation]


class DocumentTold(_Told):
    number: int | None
    title: str
    sentences: list[list[str]]
    mentions: list[DocumentMention]
    previous: int | None
    next: int | None


class Annotated_(_Told):
    """`record` has the Linked WikiText-2 form."""

    model_config = ConfigDict(title="Annotated")
    document: DocumentTold
    record: dict[str, Any]


class EntityFound(_Told):
    id: str
    label: str
    aliases: list[str]
    facts: int


class EntitiesFound(_Told):
    entities: list[EntityFound]


class Fact(_Told):
    """`reverse`: the fact runs from `tail` to the entity that was asked for."""

    relation: Relation
    tail: Entity
    reverse: bool


class EntityTold(_Told):
    id: str
    label: str
    aliases: list[str]
    literal: bool
    facts: list[Fact]
    total: int


class RelationsFound(_Told):
    relations: list[Relation]


class SessionTold(_Told):
    session: str


class Edit(_Told):
    """`removed`: the tails that had to go."""

    number: int
    action: Literal["set", "add", "remove"]
    head: Entity
    relation: Relation
    tail: Entity
    text: str
    removed: list[Entity]


class Edits(_Told):
    edits: list[Edit]
    allow_edit: bool
    persist: bool


class Edited(_Told):
    edit: Edit
    edits: list[Edit]


class Undone(_Told):
    undone: Edit
    edits: list[Edit]


class Persisted(_Told):
    """How many edits are in the graph file now, as one step of its journal."""

    persisted: int
    edits: list[Edit]


class DocumentFound(_Told):
    number: int
    title: str
    words: int
    mentions: int
    excerpt: str


class DocumentsFound(_Told):
    total: int
    documents: list[DocumentFound]


class GraphCounts(_Told):
    entities: int
    facts: int
    relations: int


class Health(_Told):
    status: Literal["ok"]
    version: str
    model: str
    run: str
    graph: GraphCounts
    vocabulary: int
    allow_edit: bool
    persist: bool
    documents: int
    token: bool
    limits: dict[str, int | float]
    examples: list[str]
