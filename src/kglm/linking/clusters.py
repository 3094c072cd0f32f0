"""Coreference by other programs: clusters of spans that mean the same, and whom they mean.

    --coreference corenlp=http://localhost:9000     a running Stanford CoreNLP server
    --coreference fastcoref                         the package of that name, with its model

A cluster of which one span has an id passes it on to the others; one with two different ids, or none, says nothing.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from kglm.errors import ConfigError, ServiceError
from kglm.linking.spans import Found, taken_places
from kglm.text.document import END, START

Span = tuple[int, int]
_AROUND = frozenset(["the", "a", "an", "this", "that", "'s", "’s", "'", '"', ",", "."])
"""Words that a span may have beside the name in it."""
MAX_WORDS = 10
"""Longer spans describe more than they name."""
TIMEOUT = 300


def propagate(tokens: Sequence[str], clusters: Iterable[Sequence[Span]], found: Sequence[Found]) -> list[Found]:
    """Mentions that clusters add to those found."""
    taken = taken_places(found)
    at = {each.start: each for each in found}
    added: dict[Span, int | None] = {}
    for cluster in clusters:
        nodes = {each.node for span in cluster for each in _within(span, at) if _names(tokens, span, each)}
        if len(nodes) == 1:
            [node] = nodes
            for span in cluster:
                # a span of two clusters that disagree says nothing
                added[span] = node if added.get(span, node) == node else None
    return [
        Found(start, end, node, "COREF")
        for (start, end), node in sorted(added.items(), key=lambda item: item[0])
        if node is not None and end - start <= MAX_WORDS and taken.isdisjoint(range(start, end))
    ]


def _within(span: Span, at: dict[int, Found]) -> list[Found]:
    """The mentions that begin in a span."""
    return [at[place] for place in range(*span) if place in at]


def _names(tokens: Sequence[str], span: Span, found: Found) -> bool:
    """Whether a span is the mention that was found, but for words that do not matter."""
    start, end = span
    if not (start <= found.start and found.end <= end):
        return False
    beside = [*tokens[start : found.start], *tokens[found.end : end]]
    return all(word.casefold() in _AROUND for word in beside)


class ClusterResolver:
    """A resolver that asks another program for clusters."""

    def __init__(self, clusters: Callable[[list[list[str]]], list[list[tuple[int, int, int]]]]) -> None:
        """`clusters`: from the words of sentences to clusters of (sentence, first word, end)."""
        self._clusters = clusters

    def resolve(self, tokens: Sequence[str], found: Sequence[Found], subject: int | None = None) -> list[Found]:
        """Mentions beside those found."""
        del subject
        sentences, first = _sentences(tokens)
        if not sentences:
            return []
        spans = [
            [(first[sentence] + start, first[sentence] + end) for sentence, start, end in cluster]
            for cluster in self._clusters(sentences)
        ]
        return propagate(tokens, spans, found)


def _sentences(tokens: Sequence[str]) -> tuple[list[list[str]], list[int]]:
    """The words of each sentence, and the place of its first."""
    sentences: list[list[str]] = []
    first: list[int] = []
    fresh = True
    for place, token in enumerate(tokens):
        if token in (START, END):
            fresh = True
            continue
        if fresh:
            sentences.append([])
            first.append(place)
            fresh = False
        sentences[-1].append(token)
    return sentences, first


def external_resolver(name: str) -> ClusterResolver:
    """The resolver of this name."""
    kind, _, address = name.partition("=")
    if kind == "corenlp" and address:
        return ClusterResolver(CoreNlp(address).clusters)
    if kind == "fastcoref":
        return ClusterResolver(fastcoref_clusters(address or None))
    raise ConfigError(f"coreference {name!r}", remedy="use graph, none, corenlp=http://HOST:PORT or fastcoref")


class CoreNlp:
    """A CoreNLP server. Words and sentences are given, so that its places are ours."""

    def __init__(self, address: str) -> None:
        properties = {
            "annotators": "tokenize,ssplit,pos,lemma,ner,parse,coref",
            "tokenize.whitespace": "true",
            "ssplit.eolonly": "true",
            "outputFormat": "json",
        }
        query = urllib.parse.urlencode({"properties": json.dumps(properties), "pipelineLanguage": "en"})
        self._address = f"{address.rstrip('/')}/?{query}"
        self._shown = address

    def clusters(self, sentences: list[list[str]]) -> list[list[tuple[int, int, int]]]:
        """Clusters of (sentence, first word, end)."""
        text = "\n".join(" ".join(_one_word(word) for word in sentence) for sentence in sentences)
        request = urllib.request.Request(self._address, text.encode("utf-8", "replace"))
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
                record = json.load(answer)
            return [
                [(each["sentNum"] - 1, each["startIndex"] - 1, each["endIndex"] - 1) for each in chain]
                for chain in record["corefs"].values()
            ]
        except urllib.error.HTTPError as error:
            raise ServiceError(
                f"the CoreNLP server refuses ({error}: {error.read(200).decode(errors='replace')})",
                place=self._shown,
                remedy="see its log; for long texts start it with a higher -maxCharLength and -timeout",
            ) from error
        except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
            raise ServiceError(
                f"no answer from the CoreNLP server ({error})", place=self._shown, remedy="is it running there?"
            ) from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ServiceError(
                "the answer is not that of a CoreNLP server with coreference",
                place=self._shown,
                remedy="start one with the annotator coref",
            ) from error


def _one_word(word: str) -> str:
    """A word as one token of a text that is cut at blanks."""
    return "".join("_" if char.isspace() else char for char in word) or "_"


def fastcoref_clusters(model: str | None = None) -> Callable[[list[list[str]]], list[list[tuple[int, int, int]]]]:
    """Clusters by the package fastcoref; it loads its model when it is first used."""
    try:
        from fastcoref import FCoref
    except ImportError as error:
        raise ConfigError("coreference fastcoref", remedy="pip install fastcoref") from error
    predictor: Any = FCoref(model, enable_progress_bar=False) if model else FCoref(enable_progress_bar=False)

    def clusters(sentences: list[list[str]]) -> list[list[tuple[int, int, int]]]:
        [answer] = predictor.predict(texts=[" ".join(word for sentence in sentences for word in sentence)])
        return by_characters(sentences, answer.get_clusters(as_strings=False))

    return clusters


def by_characters(
    sentences: list[list[str]], clusters: Iterable[Iterable[tuple[int, int]]]
) -> list[list[tuple[int, int, int]]]:
    """From places in the words joined with blanks to (sentence, first word, end); what leaves a sentence is dropped."""
    starts: dict[int, tuple[int, int]] = {}
    ends: dict[int, tuple[int, int]] = {}
    at = 0
    for number, sentence in enumerate(sentences):
        for place, word in enumerate(sentence):
            starts[at], ends[at + len(word)] = (number, place), (number, place + 1)
            at += len(word) + 1
    found = []
    for cluster in clusters:
        spans = [(starts[a], ends[b]) for a, b in cluster if a in starts and b in ends]
        found.append([(begin[0], begin[1], end[1]) for begin, end in spans if begin[0] == end[0]])
    return found
