"""Real servers for tests: a small trained run, a server on a free port, and a client that sends what it is told."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kglm.answer.model import FactAwareLM
from kglm.kg.embedding.transe import TransEConfig, embed_graph
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.literals.dates import Date
from kglm.runs.settings import load_config
from kglm.serve.explore import Library
from kglm.serve.listen import listen
from kglm.serve.server import make_server
from kglm.serve.service import Service
from kglm.serve.settings import Limits, ServeConfig
from kglm.text.document import read_documents, write_documents
from kglm.train.start import train
from kglm.writing.verbalise import VerbaliseConfig, verbalise
from support.worlds import make_store

PROMPT = "Barack Obama was born on"
SCRIPT = "<script>alert(1)</script>"
NAMES = {
    "Q76": ("Barack Obama", "Obama"),
    "Q13133": ("Michelle Obama",),
    "Q18094": ("Honolulu",),
    "Q1297": ("Chicago",),
    "Q666": (SCRIPT, "Evil Twin"),
    "P569": ("date of birth", "born on"),
    "P19": ("place of birth",),
    "P26": ("spouse", "married to"),
}
FACTS = (
    ("Q76", "P569", Date(11, 1961, 8, 4).id),
    ("Q76", "P19", "Q18094"),
    ("Q76", "P26", "Q13133"),
    ("Q13133", "P569", Date(11, 1964, 1, 17).id),
    ("Q13133", "P19", "Q1297"),
    ("Q13133", "P26", "Q76"),
    ("Q666", "P19", "Q1297"),
)


def make_run(home: Path) -> Path:
    """A run in `home`/run, its graph and a few linked documents beside it. It was trained for seconds: names are said
    because they are copied, in whatever order."""
    kg = make_store(home, FACTS, NAMES)
    embed_graph(kg, TransEConfig(dim=8, epochs=2, held_out=0))
    with KnowledgeGraph.open(kg) as graph:
        said = list(verbalise(graph, 40, config=VerbaliseConfig(sentences=1)))
    write_documents(home / "said.jsonl", said)
    write_documents(home / "some.jsonl", said[:5])
    options = ["train.rows=8", "train.length=16", "train.epochs=1", "train.learning_rate=0.04", "data.min_count=2"]
    train(load_config("tiny", "kglm", options), [home / "said.jsonl"], [home / "some.jsonl"], kg, home / "run")
    return home / "run"


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """Of a refusal."""
        return str(self.json["error"]["code"])


@dataclass(frozen=True)
class Client:
    """A client of a server on this machine."""

    port: int
    service: Service
    session: str | None = None
    token: str | None = None

    def ask(self, method: str, path: str, body: Any = None, *, raw: bytes | None = None, **headers: str) -> Answer:
        """Send a request, with JSON or with bytes as they are."""
        sent = {"Content-Type": "application/json"} if body is not None or raw is not None else {}
        if self.session is not None:
            sent["X-Kglm-Session"] = self.session
        if self.token is not None:
            sent["Authorization"] = f"Bearer {self.token}"
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        data = json.dumps(body).encode() if body is not None else raw
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, data, sent)
            answer = connection.getresponse()
            return Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Answer:
        return self.ask("GET", path, **headers)

    def post(self, path: str, body: Any = None, **headers: str) -> Answer:
        return self.ask("POST", path, body, **headers)

    def with_session(self) -> Client:
        """The same client with a session of its own."""
        return Client(self.port, self.service, self.post("/api/sessions").json["session"], self.token)

    def words(self, prompt: str = PROMPT, top: int = 10) -> dict[str, float]:
        """The most probable next words."""
        answer = self.post("/api/complete", {"text": prompt, "top": top})
        assert answer.status == 200, answer.body
        return {word["word"]: word["p"] for word in answer.json["words"]}

    def socket(self) -> socket.socket:
        """A bare connection."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=30)


@contextmanager
def serving(
    live: FactAwareLM, documents: Path | None = None, *, limits: Limits | None = None, **config: Any
) -> Iterator[Client]:
    """A server in a thread of this process, on a free port."""
    settings = ServeConfig(port=0, limits=limits or Limits(), **config)
    service = Service(live, settings, Library(read_documents(documents) if documents else ()))
    server = make_server(service)
    with listen(settings) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            while not server.started:
                time.sleep(0.01)
            yield Client(listening.getsockname()[1], service, token=settings.token)
        finally:
            server.should_exit = True
            thread.join(20)
            assert not thread.is_alive()
