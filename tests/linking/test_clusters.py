"""Coreference by external programs; a local HTTP server stands for CoreNLP."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any
from urllib.parse import parse_qs, urlparse

import pytest
import spacy

from kglm.errors import ConfigError, KglmError
from kglm.linking.clusters import ClusterResolver, external_resolver, propagate, word_clusters
from kglm.linking.ner import SpacyNames
from kglm.linking.spans import LinkedSpan
from kglm.text.document import END, START

TOKENS = [START, "the", "Lamps", "sang", ".", END, "They", "left", "the", "band", "'s", "van", "to", "Ann", ".", END]
LAMPS, ANN = LinkedSpan(2, 3, 1, "WIKI"), LinkedSpan(13, 14, 2, "WIKI")


class TestPropagation:
    def test_entity_of_a_cluster_is_assigned_to_all_its_spans(self) -> None:
        clusters = [[(1, 3), (6, 7), (8, 11)]]
        assert propagate(TOKENS, clusters, [LAMPS, ANN]) == [
            LinkedSpan(6, 7, 1, "COREF"),
            LinkedSpan(8, 11, 1, "COREF"),
        ]

    def test_clusters_with_two_entities_or_none_are_ignored(self) -> None:
        assert propagate(TOKENS, [[(2, 3), (6, 7), (13, 14)]], [LAMPS, ANN]) == []
        assert propagate(TOKENS, [[(6, 7), (8, 10)]], [LAMPS, ANN]) == []

    def test_span_with_more_words_is_not_the_mention(self) -> None:
        assert propagate(TOKENS, [[(2, 4), (6, 7)]], [LAMPS]) == [], "the Lamps sang"

    def test_span_in_clusters_of_two_entities_is_dropped(self) -> None:
        assert propagate(TOKENS, [[(2, 3), (6, 7)], [(13, 14), (6, 7)]], [LAMPS, ANN]) == []

    def test_given_spans_are_not_assigned_again(self) -> None:
        assert propagate(TOKENS, [[(2, 3), (13, 15)]], [LAMPS, ANN]) == []


def test_character_spans_become_word_spans() -> None:
    sentences = [["Ann", "sang"], ["She", "left"]]
    assert word_clusters(sentences, [[(0, 3), (9, 12)], [(4, 12), (1, 3)]]) == [[(0, 0, 1), (1, 0, 1)], []]


Record = dict[str, Any]


@pytest.fixture
def server() -> Iterator[tuple[str, list[Record], list[Record]]]:
    """Address of a server, the responses it will send, and the requests it has received."""
    responses: list[Record] = []
    requests: list[Record] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            text = self.rfile.read(int(self.headers["Content-Length"])).decode()
            requests.append({"text": text, "query": parse_qs(urlparse(self.path).query)})
            body = json.dumps(responses.pop(0)).encode()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    running = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=running.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{running.server_port}", responses, requests
    running.shutdown()
    thread.join()
    running.server_close()


class TestCoreNlp:
    def test_request_has_words_and_response_clusters(self, server: tuple[str, list[Record], list[Record]]) -> None:
        address, responses, requests = server
        chain = [
            {"sentNum": 1, "startIndex": 1, "endIndex": 3, "text": "the Lamps"},
            {"sentNum": 2, "startIndex": 1, "endIndex": 2, "text": "They"},
        ]
        responses.append({"sentences": [], "corefs": {"3": chain}})
        resolver = external_resolver(f"corenlp={address}")
        assert resolver.resolve(TOKENS, [LAMPS]) == [LinkedSpan(6, 7, 1, "COREF")]
        assert requests[0]["text"] == "the Lamps sang .\nThey left the band 's van to Ann ."
        properties = json.loads(requests[0]["query"]["properties"][0])
        assert properties["tokenize.whitespace"] == "true" and "coref" in properties["annotators"]

    def test_empty_text_sends_no_request(self, server: tuple[str, list[Record], list[Record]]) -> None:
        assert external_resolver(f"corenlp={server[0]}").resolve([START, END], []) == []
        assert not server[2]

    def test_response_of_another_server_is_an_error(self, server: tuple[str, list[Record], list[Record]]) -> None:
        server[1].append({"hello": 1})
        with pytest.raises(KglmError, match="not that of a CoreNLP server"):
            external_resolver(f"corenlp={server[0]}").resolve(TOKENS, [LAMPS])

    def test_unreachable_server_is_an_error(self) -> None:
        with pytest.raises(KglmError, match="no answer from the CoreNLP server"):
            external_resolver("corenlp=http://127.0.0.1:1").resolve(TOKENS, [LAMPS])


@pytest.mark.parametrize("name", ["corenlp", "corenlp=", "best", "graph=1"])
def test_unknown_resolver_is_an_error(name: str) -> None:
    with pytest.raises(ConfigError, match="coreference"):
        external_resolver(name)


def test_fastcoref() -> None:
    pytest.importorskip("fastcoref", reason="fastcoref is not installed, and its model cannot be fetched in tests")
    assert isinstance(external_resolver("fastcoref"), ClusterResolver)


class TestSpacy:
    @pytest.fixture
    def names(self) -> SpacyNames:
        pipeline = spacy.blank("en")
        rules = [{"label": "ORG", "pattern": "the Lamps"}, {"label": "DATE", "pattern": "left"}]
        pipeline.add_pipe("entity_ruler").add_patterns(rules)  # type: ignore[attr-defined]
        return SpacyNames(pipeline)

    def test_spans_are_positions_in_our_tokens(self, names: SpacyNames) -> None:
        assert names.spans(TOKENS) == {(1, 3)}
        assert names.spans([START, END]) == set()
        assert names.spans([START, "", "the", "Lamps", END]) == {(2, 4)}

    def test_missing_pipeline_or_one_without_ner_is_an_error(self) -> None:
        with pytest.raises(ConfigError, match="no spaCy pipeline"):
            SpacyNames("en_no_such_model")
        with pytest.raises(ConfigError, match="has no named entity recognition"):
            SpacyNames(spacy.blank("en"))
