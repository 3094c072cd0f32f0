"""The typed bodies of requests and responses; `/openapi.json` is generated from them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

MAX_TEXT, MAX_WORDS = 20_000, 1_000
"""Characters and words of a prompt."""
MAX_ARTICLE = 20_000
"""Characters of a text to annotate."""
MAX_SPANS = 200
"""Mentions given with a prompt."""

Text = Annotated[str, StringConstraints(max_length=MAX_TEXT), Field(description="A text in natural language.")]
Name = Annotated[str, StringConstraints(min_length=1, max_length=300)]
P = Annotated[float, Field(description="A probability.")]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class _Response(BaseModel):
    model_config = ConfigDict(allow_inf_nan=False)


# Requests


class EntitySpan(_Request):
    """Words [start, end) of the prompt refer to this entity."""

    start: Annotated[int, Field(ge=0, le=MAX_WORDS, description="Position of the first word, from 0.")]
    end: Annotated[int, Field(ge=0, le=MAX_WORDS, description="Position after the last word.")]
    id: Name


class LinkRequest(_Request):
    """A text and the mentions in it whose entities are given."""

    text: Text
    entities: Annotated[list[EntitySpan], Field(max_length=MAX_SPANS, description="Mentions with a given entity.")] = []


class PromptRequest(LinkRequest):
    """A text to continue, and how to link the names whose entity is not given."""

    links: Annotated[
        Literal["average", "best", "none"],
        Field(description="Average over the likely links, take the best, or read names as plain words."),
    ] = "average"
    trust: Annotated[float | None, Field(ge=-30, le=30, description="Pretrained models: bias towards facts.")] = None


class CompleteRequest(PromptRequest):
    """A prompt, the number of answers and next words, and the number of reasons for each."""

    top: Annotated[int, Field(ge=1, le=50, description="Number of answers and of next words.")] = 10
    reasons: Annotated[int, Field(ge=0, le=20, description="Maximum number of reasons of each.")] = 5


class GenerateRequest(PromptRequest):
    """A prompt and how to continue it."""

    words: Annotated[int, Field(ge=1, le=200, description="Number of words to generate.")] = 40
    temperature: Annotated[
        float, Field(ge=0, le=2, description="Below 1, improbable words become rarer; 0 is greedy.")
    ] = 0.7
    top_p: Annotated[float, Field(gt=0, le=1, description="Sample from the top words with this probability.")] = 0.9
    seed: Annotated[int, Field(ge=0, lt=2**32, description="Random seed.")] = 0
    beam: Annotated[int, Field(ge=0, le=8, description="Beam width; 0 samples words, 1 is greedy search.")] = 0
    grounded: Annotated[
        bool, Field(description="Pretrained models: say only names, dates and numbers of the graph or the prompt.")
    ] = False


class AskRequest(PromptRequest):
    """A question, and the number of answers to list."""

    top: Annotated[int, Field(ge=1, le=50, description="Number of answers.")] = 10
    reasons: Annotated[int, Field(ge=0, le=20, description="Maximum number of reasons of each.")] = 5


class AnnotateRequest(_Request):
    """A text to annotate."""

    text: Annotated[str, StringConstraints(max_length=MAX_ARTICLE), Field(description="Plain text.")]
    title: Annotated[str, StringConstraints(max_length=300), Field(description="Name of the main entity.")] = ""


class EditRequest(_Request):
    """A fact, by ids or names, to add, to remove, or to set as the only one of its head and relation."""

    action: Literal["set", "add", "remove"]
    head: Name
    relation: Name
    tail: Name


# Responses


class ErrorDetail(_Response):
    """A code for programs and a message for people."""

    code: str
    message: str


class ErrorResponse(_Response):
    """The reason why a request was refused."""

    error: ErrorDetail


class Relation(_Response):
    id: str
    label: str


class Entity(_Response):
    """`literal`: true for a date or a quantity."""

    id: str
    label: str
    literal: bool


class Mention(_Response):
    """Words [start, end) of the prompt refer to this entity with probability p; an ambiguous name has many entries.

    `id` is null where no entity of the graph is the most probable: then p is the probability of that, `p_nil`.
    """

    start: int
    end: int
    text: str
    id: str | None
    label: str | None
    p: P
    description: str | None
    p_nil: P


class Reason(_Response):
    """One reason of an answer or a word and its share of the probability; `copied` is null for answers."""

    p: P
    type: Literal["none", "new", "related", "continue", "missing"]
    parent: str | None
    parent_label: str | None
    relation: str | None
    relation_label: str | None
    entity: str | None
    entity_label: str | None
    period: str | None
    since: str | None
    until: str | None
    at: str | None
    source: str | None
    copied: bool | None
    text: str


class FurtherReasons(_Response):
    """Number and total probability of the reasons that are not listed."""

    count: int
    p: P


class Answer(_Response):
    """A name of an entity, or plain words, that the text goes on with; `facts` are the reasons that are facts."""

    text: str
    p: P
    entity: str | None
    entity_label: str | None
    facts: list[Reason]
    reasons: list[Reason]
    further_reasons: FurtherReasons


class Missing(_Response):
    """The text asks for a relation that the parent lacks in the graph, with this probability."""

    p: P
    parent: str
    parent_label: str
    relation: str
    relation_label: str
    text: str


class Word(_Response):
    word: str
    p: P
    reasons: list[Reason]
    further_reasons: FurtherReasons


class Rest(_Response):
    """Probability that was not enumerated: of less probable new entities and related facts."""

    new: P
    related: P


class CompleteResponse(_Response):
    """The prompt as words, the most probable answers and next words, and facts that are asked for and missing."""

    prompt: list[str]
    answers: list[Answer]
    missing: list[Missing]
    words: list[Word]
    rest: Rest
    mentions: list[Mention]


class AskResponse(_Response):
    """The answer to a question as a sentence, or null and why there is none; the values of the asked relations."""

    prompt: list[str]
    text: str | None
    note: str | None
    answers: list[Answer]
    missing: list[Missing]
    mentions: list[Mention]


class LinkResponse(_Response):
    prompt: list[str]
    mentions: list[Mention]


class Node(_Response):
    """`p` of a mentioned entity: that the mention refers to it; of a candidate: that the next word comes from it."""

    id: str
    label: str
    literal: bool
    kind: Literal["mentioned", "candidate"]
    p: P


class Edge(_Response):
    """A fact, with the probability that the next word comes from it."""

    parent: str
    relation: Relation
    entity: str
    p: P


class GraphResponse(_Response):
    """`left_out`: the number of less probable facts that are not listed."""

    nodes: list[Node]
    edges: list[Edge]
    left_out: int


class Explanation(_Response):
    parent: Entity
    relation: Relation


class DocumentMention(_Response):
    """`start` and `end` count the words of all sentences."""

    start: int
    end: int
    entity: Entity
    source: str
    reasons: list[Explanation]


class DocumentResponse(_Response):
    number: int | None
    title: str
    sentences: list[list[str]]
    mentions: list[DocumentMention]
    previous: int | None
    next: int | None


class AnnotateResponse(_Response):
    """`record` has the Linked WikiText-2 form."""

    document: DocumentResponse
    record: dict[str, Any]


class EntitySummary(_Response):
    id: str
    label: str
    aliases: list[str]
    facts: int


class EntitiesResponse(_Response):
    entities: list[EntitySummary]


class Fact(_Response):
    """A fact of the requested entity; with `reverse`, it points from `tail` to the entity."""

    relation: Relation
    tail: Entity
    reverse: bool


class EntityResponse(_Response):
    id: str
    label: str
    aliases: list[str]
    literal: bool
    facts: list[Fact]
    total: int


class RelationsResponse(_Response):
    relations: list[Relation]


class SessionResponse(_Response):
    session: str


class Edit(_Response):
    """`removed`: the tails that the edit removed, at most 100 of them."""

    number: int
    action: Literal["set", "add", "remove"]
    head: Entity
    relation: Relation
    tail: Entity
    text: str
    removed: list[Entity]


class EditsResponse(_Response):
    edits: list[Edit]
    allow_edit: bool
    persist: bool


class EditResponse(_Response):
    edit: Edit
    edits: list[Edit]


class UndoResponse(_Response):
    undone: Edit
    edits: list[Edit]


class PersistResponse(_Response):
    """`persisted`: the number of edits written to the graph file, as one step of its journal."""

    persisted: int
    edits: list[Edit]


class DocumentSummary(_Response):
    number: int
    title: str
    words: int
    mentions: int
    excerpt: str


class DocumentsResponse(_Response):
    total: int
    documents: list[DocumentSummary]


class GraphCounts(_Response):
    entities: int
    facts: int
    relations: int


class HealthResponse(_Response):
    status: Literal["ok"]
    version: str
    model: str
    run: str
    graph: GraphCounts
    vocabulary: int
    questions: bool
    allow_edit: bool
    persist: bool
    documents: int
    token: bool
    limits: dict[str, int | float]
    examples: list[str]
