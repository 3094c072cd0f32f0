"""Coreference by external programs: clusters of coreferent spans, linked to entities.

    --coreference corenlp=http://localhost:9000     a running Stanford CoreNLP server
    --coreference fastcoref                         the fastcoref package with its model

If exactly one entity is linked in a cluster, all spans of the cluster refer to it; other clusters are ignored.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from kglm.errors import ConfigError, ServiceError
from kglm.linking.spans import LinkedSpan, covered_positions
from kglm.text.document import END, START

Span = tuple[int, int]
_IGNORED_BESIDE = frozenset(["the", "a", "an", "this", "that", "'s", "’s", "'", '"', ",", "."])
"""Words that a span may contain beside a mention and still count as the same mention."""
MAX_WORDS = 10
"""Longer spans are descriptions, not mentions."""
TIMEOUT = 300
"""Seconds to wait for a response of the server."""


def propagate(
    tokens: Sequence[str], clusters: Iterable[Sequence[Span]], given: Sequence[LinkedSpan]
) -> list[LinkedSpan]:
    """New mentions: spans that share a cluster with a given one."""
    covered = covered_positions(given)
    by_start = {each.start: each for each in given}
    added: dict[Span, int | None] = {}
    for cluster in clusters:
        nodes = {each.node for span in cluster for each in _within(span, by_start) if _same_mention(tokens, span, each)}
        if len(nodes) == 1:
            [node] = nodes
            for span in cluster:
                # a span in two clusters of different entities is dropped
                added[span] = node if added.get(span, node) == node else None
    return [
        LinkedSpan(start, end, node, "COREF")
        for (start, end), node in sorted(added.items(), key=lambda item: item[0])
        if node is not None and end - start <= MAX_WORDS and covered.isdisjoint(range(start, end))
    ]


def _within(span: Span, by_start: dict[int, LinkedSpan]) -> list[LinkedSpan]:
    """Mentions that begin inside a span."""
    return [by_start[position] for position in range(*span) if position in by_start]


def _same_mention(tokens: Sequence[str], span: Span, mention: LinkedSpan) -> bool:
    """True if a span is the mention, apart from determiners and punctuation around it."""
    start, end = span
    if not (start <= mention.start and mention.end <= end):
        return False
    beside = [*tokens[start : mention.start], *tokens[mention.end : end]]
    return all(word.casefold() in _IGNORED_BESIDE for word in beside)


class ClusterResolver:
    """Resolver that gets coreference clusters from an external program."""

    def __init__(self, clusters: Callable[[list[list[str]]], list[list[tuple[int, int, int]]]]) -> None:
        """`clusters` maps tokenized sentences to clusters of (sentence, first word, end)."""
        self._clusters = clusters

    def resolve(
        self, tokens: Sequence[str], given: Sequence[LinkedSpan], subject: int | None = None
    ) -> list[LinkedSpan]:
        """Mentions outside the given spans."""
        del subject
        sentences, first = _sentences(tokens)
        if not sentences:
            return []
        spans = [
            [(first[sentence] + start, first[sentence] + end) for sentence, start, end in cluster]
            for cluster in self._clusters(sentences)
        ]
        return propagate(tokens, spans, given)


def _sentences(tokens: Sequence[str]) -> tuple[list[list[str]], list[int]]:
    """Words of each sentence, and the position of its first word."""
    sentences: list[list[str]] = []
    first: list[int] = []
    begins = True
    for position, token in enumerate(tokens):
        if token in (START, END):
            begins = True
            continue
        if begins:
            sentences.append([])
            first.append(position)
            begins = False
        sentences[-1].append(token)
    return sentences, first


def external_resolver(name: str) -> ClusterResolver:
    """Resolver for an option value: `corenlp=ADDRESS`, `fastcoref` or `fastcoref=MODEL`."""
    kind, _, address = name.partition("=")
    if kind == "corenlp" and address:
        return ClusterResolver(CoreNlp(address).clusters)
    if kind == "fastcoref":
        return ClusterResolver(fastcoref_clusters(address or None))
    raise ConfigError(f"unknown coreference {name!r}", remedy="use graph, none, corenlp=http://HOST:PORT or fastcoref")


class CoreNlp:
    """Client of a CoreNLP server. It sends tokenized sentences, so word positions agree with ours."""

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
        """Coreference clusters of (sentence, first word, end)."""
        text = "\n".join(" ".join(_one_word(word) for word in sentence) for sentence in sentences)
        request = urllib.request.Request(self._address, text.encode("utf-8", "replace"))
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
                record = json.load(response)
            return [
                [(each["sentNum"] - 1, each["startIndex"] - 1, each["endIndex"] - 1) for each in chain]
                for chain in record["corefs"].values()
            ]
        except urllib.error.HTTPError as error:
            raise ServiceError(
                f"the CoreNLP server refuses the request ({error}: {error.read(200).decode(errors='replace')})",
                place=self._shown,
                remedy="see its log; for long texts start it with a higher -maxCharLength and -timeout",
            ) from error
        except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
            raise ServiceError(
                f"no answer from the CoreNLP server ({error})",
                place=self._shown,
                remedy="check that it runs at this address",
            ) from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ServiceError(
                "the response is not that of a CoreNLP server with coreference",
                place=self._shown,
                remedy="start one with the annotator coref",
            ) from error


def _one_word(word: str) -> str:
    """Replace white space in a word, so that the server's whitespace tokenizer keeps it whole."""
    return "".join("_" if char.isspace() else char for char in word) or "_"


def fastcoref_clusters(model: str | None = None) -> Callable[[list[list[str]]], list[list[tuple[int, int, int]]]]:
    """Clustering function of the fastcoref package; loads its model at once."""
    try:
        from fastcoref import FCoref
    except ImportError as error:
        raise ConfigError("the package fastcoref is not installed", remedy="pip install fastcoref") from error
    predictor: Any = FCoref(model, enable_progress_bar=False) if model else FCoref(enable_progress_bar=False)

    def clusters(sentences: list[list[str]]) -> list[list[tuple[int, int, int]]]:
        [prediction] = predictor.predict(texts=[" ".join(word for sentence in sentences for word in sentence)])
        return word_clusters(sentences, prediction.get_clusters(as_strings=False))

    return clusters


def word_clusters(
    sentences: list[list[str]], clusters: Iterable[Iterable[tuple[int, int]]]
) -> list[list[tuple[int, int, int]]]:
    """Convert character spans in the blank-joined text to (sentence, first word, end); drop spans across sentences."""
    starts: dict[int, tuple[int, int]] = {}
    ends: dict[int, tuple[int, int]] = {}
    at = 0
    for number, sentence in enumerate(sentences):
        for position, word in enumerate(sentence):
            starts[at], ends[at + len(word)] = (number, position), (number, position + 1)
            at += len(word) + 1
    found = []
    for cluster in clusters:
        spans = [(starts[a], ends[b]) for a, b in cluster if a in starts and b in ends]
        found.append([(begin[0], begin[1], end[1]) for begin, end in spans if begin[0] == end[0]])
    return found
