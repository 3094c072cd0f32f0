"""The annotation pipeline: the same file for any number of workers, after crashes and with broken input."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from conftest import Command
from kglm.annotate import pipeline
from kglm.annotate.annotator import AnnotateConfig, Annotator
from kglm.annotate.pipeline import Job, Recipe, Shard, annotate, annotate_shard, count_anchors
from kglm.errors import ConfigError, DataError, KglmError, ServiceError
from kglm.kg.graph import KnowledgeGraph
from kglm.linking.anchors import Anchors
from kglm.text.article import Article
from kglm.text.document import Document, read_documents
from support.worlds import make_store

FACTS = (("Q1", "P19", "Q2"), ("Q2", "P17", "Q3"), ("Q1", "P31", "Q5"))
NAMES = {"Q1": ("Clara Dunn",), "Q2": ("Ulm",), "Q3": ("Germany",), "Q5": ("human",)}
COUNT = 90

pytestmark = pytest.mark.usefixtures("forks")


@pytest.fixture(scope="module")
def kg(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_store(tmp_path_factory.mktemp("kg"), FACTS, NAMES)


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Texts as JSON lines, two of them broken, and one text file."""
    home = tmp_path_factory.mktemp("texts")
    lines = []
    for number in range(COUNT):
        text = f"Clara Dunn ({number}) was born in Ulm. She left Germany. " * (1 + number % 7)
        lines.append(json.dumps({"title": f"Text {number}", "text": text}))
    lines[7], lines[40] = "{", json.dumps({"title": "Nothing"})
    (home / "a.jsonl").write_text("".join(line + "\n" for line in lines))
    (home / "b.txt").write_text("A note\n\nClara Dunn was seen in Ulm.")
    return home


def recipe(kg: Path) -> Recipe:
    return Recipe(str(kg), AnnotateConfig())


@pytest.fixture(scope="module")
def expected(kg: Path, sources: Path, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    to = tmp_path_factory.mktemp("expected") / "docs.jsonl"
    report = annotate([sources], to, recipe(kg))
    assert report.documents == COUNT - 2 + 1
    assert len(report.failures) == 2 and "line 8" in report.failures[0] and "line 41" in report.failures[1]
    return to.read_bytes()


def test_documents_are_in_the_order_of_the_sources(expected: bytes, tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").write_bytes(expected)
    documents = list(read_documents(tmp_path / "d.jsonl"))
    wanted = [f"Text {number}" for number in range(COUNT) if number not in (7, 40)]
    assert [document.title for document in documents] == [*wanted, "A note"]
    assert {mention.source for document in documents for mention in document.mentions} == {"NEL", "COREF"}
    born = [document.mentions[1] for document in documents]
    assert all(mention.explanations == (("Q1", "P19"),) for mention in born)


@pytest.mark.parametrize("workers", [2, 4])
def test_any_number_of_workers_gives_the_same_bytes(
    workers: int, kg: Path, sources: Path, expected: bytes, tmp_path: Path
) -> None:
    annotate([sources], tmp_path / "d.jsonl", recipe(kg), workers=workers)
    assert (tmp_path / "d.jsonl").read_bytes() == expected
    assert [path.name for path in tmp_path.iterdir()] == ["d.jsonl"], "no other file is left"


def stop_after_four_shards(sources: Path, to: Path, kg: Path, stopped: Connection) -> None:
    """Annotate, send a message after the fourth shard is written, and wait to be killed."""
    write = pipeline._write

    def write_and_stop(parts: Path, shard: Shard) -> None:
        write(parts, shard)
        if shard.number == 3:
            stopped.send(shard.number)
            signal.pause()

    pipeline._write, pipeline.SHARD = write_and_stop, 10
    annotate([sources], to, recipe(kg))


def test_killed_run_resumes_with_the_missing_shards(
    kg: Path, sources: Path, expected: bytes, tmp_path: Path, forks: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    to = tmp_path / "d.jsonl"
    receiver, sender = forks.Pipe(duplex=False)
    process = forks.Process(target=stop_after_four_shards, args=(sources, to, kg, sender))
    process.start()
    assert receiver.recv() == 3
    process.kill()
    process.join()
    assert process.exitcode == -signal.SIGKILL and not to.exists()
    done = []
    monkeypatch.setattr(pipeline, "SHARD", 10)
    write = pipeline._write
    monkeypatch.setattr(pipeline, "_write", lambda parts, shard: (done.append(shard.number), write(parts, shard)))
    report = annotate([sources], to, recipe(kg))
    assert to.read_bytes() == expected, "the size of shards does not matter"
    assert done == list(range(4, 10)), "only the missing shards"
    assert report.documents == COUNT - 1 and len(report.failures) == 2


def die_once(died: Path, job: Job) -> Shard:
    """Annotate a shard; the first process that gets the third one is killed."""
    if job.number == 2 and not died.exists():
        died.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return annotate_shard(job)


def test_killed_worker_loses_no_article(kg: Path, sources: Path, expected: bytes, tmp_path: Path) -> None:
    to, work = tmp_path / "d.jsonl", partial(die_once, tmp_path / "died")
    report = annotate([sources], to, recipe(kg), runner=lambda jobs: pipeline.run_in_processes(jobs, 2, work))
    assert (tmp_path / "died").exists() and report.documents == COUNT - 1
    assert to.read_bytes() == expected


def test_failing_article_is_reported_and_skipped(
    kg: Path, sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Annotator.annotate

    def fragile(self: Annotator, article: Article) -> Document:
        if article.title == "Text 3":
            raise RuntimeError("boom")
        return real(self, article)

    monkeypatch.setattr(Annotator, "annotate", fragile)
    report = annotate([sources], tmp_path / "d.jsonl", recipe(kg))
    assert report.documents == COUNT - 2 and report.counts["skipped: failed"] == 1
    assert any("a.jsonl, line 4" in failure and "boom" in failure for failure in report.failures)


def deadly(job: Job) -> Shard:
    """Annotate a shard; the article "Text 33" kills the process."""
    if any(b"Text 33" in article.data for article in job.articles):
        os.kill(os.getpid(), signal.SIGKILL)
    return annotate_shard(job)


def test_article_that_kills_every_worker_is_reported_and_skipped(
    kg: Path, sources: Path, expected: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "SHARD", 6)
    to = tmp_path / "d.jsonl"
    report = annotate([sources], to, recipe(kg), runner=lambda jobs: pipeline.run_in_processes(jobs, 2, deadly))
    assert to.read_bytes() == b"".join(line for line in expected.splitlines(True) if b'"Text 33"' not in line)
    (failure,) = [failure for failure in report.failures if "line 34" in failure]
    assert failure.endswith("the process that annotated it was killed (out of memory?)")
    assert report.counts["skipped: failed"] == 1


def page(title: str, text: str) -> str:
    return f"<page><title>{title}</title><ns>0</ns><revision><text>{text}</text></revision></page>"


def test_links_follow_the_redirects_of_a_dump(kg: Path, tmp_path: Path) -> None:
    """One redirect or two, before or after the article; a cycle leads to no entity."""
    pages = {
        "Ulm Minster": "[[Ulma]], [[Old Ulm|the town]] and [[Germania]] or [[Round]] and [[Nowhere]].",
        "Old Ulm": "#REDIRECT [[Ulma]]",
        "Ulma": "#REDIRECT [[Ulm]]",
        "Germania": "#redirect [[Germany#History]]",
        "Round": "#REDIRECT [[Way round]]",
        "Way round": "#REDIRECT [[Round]]",
    }
    (tmp_path / "wiki.xml").write_text(f"<mediawiki>{''.join(map(page, pages, pages.values()))}</mediawiki>")
    to, anchors = tmp_path / "d.jsonl", tmp_path / "anchors.json"
    report = annotate([tmp_path / "wiki.xml"], to, recipe(kg), workers=2)
    (document,) = read_documents(to)
    found = [(document.text(mention), mention.id, mention.source) for mention in document.mentions]
    assert found == [("Ulma", "Q2", "WIKI"), ("the town", "Q2", "WIKI"), ("Germania", "Q3", "WIKI")]
    assert report.counts["links"] == 3 and report.counts["links to no entity"] == 2
    assert report.counts["skipped: redirect"] == 5
    count_anchors([tmp_path / "wiki.xml"], kg, anchors)
    assert json.loads(anchors.read_text())["links"]["the town"] == {"Q2": 1}


def test_additional_keys_of_a_record_are_kept(kg: Path, tmp_path: Path) -> None:
    mine = {"title": "A", "text": "Clara Dunn was born in Ulm.", "links": [], "author": {"name": "me"}, "n": 3}
    words = {"title": "B", "tokens": ["Ulm"], "links": [], "annotations": [], "mood": None}
    (tmp_path / "t.jsonl").write_text(json.dumps(mine) + "\n" + json.dumps(words) + "\n")
    annotate([tmp_path / "t.jsonl"], tmp_path / "d.jsonl", recipe(kg))
    first, second = read_documents(tmp_path / "d.jsonl")
    assert first.extra == {"author": {"name": "me"}, "n": 3} and second.extra == {"mood": None}


def test_counts_after_pruning_are_those_of_the_file(kg: Path, sources: Path, tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text(json.dumps({"title": "A", "text": "Clara Dunn was born in Ulm, in Germany."}))
    report = annotate([tmp_path / "t.jsonl"], tmp_path / "d.jsonl", recipe(kg), prune=True)
    (document,) = read_documents(tmp_path / "d.jsonl")
    sources_left = Counter(f"source {mention.source}" for mention in document.mentions)
    assert sources_left == {name: n for name, n in report.counts.items() if name.startswith("source ")}
    assert report.counts["pruned explanations"] > 0


def test_run_is_not_resumed_with_other_settings(kg: Path, sources: Path, tmp_path: Path) -> None:
    def stop(jobs: Iterable[Job]) -> Iterator[Shard]:
        yield annotate_shard(next(iter(jobs)))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        annotate([sources], tmp_path / "d.jsonl", recipe(kg), runner=stop)
    other = Recipe(str(kg), AnnotateConfig(min_p=0.9))
    with pytest.raises(KglmError, match="begun with other sources or settings"):
        annotate([sources], tmp_path / "d.jsonl", other)
    annotate([sources], tmp_path / "d.jsonl", recipe(kg))


def test_edit_of_the_graph_during_a_run_is_an_error(
    sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = make_store(tmp_path / "kg", FACTS, NAMES)

    def edited(jobs: Iterable[Job]) -> Iterator[Shard]:
        for job in jobs:
            if job.number == 2:
                with KnowledgeGraph.open(own, writable=True) as graph:
                    graph.add("Q3", "P17", "Q1")
                pipeline._annotator.cache_clear()
            yield annotate_shard(job)

    with pytest.raises(KglmError, match="edited since this run began"):
        annotate([sources], tmp_path / "d.jsonl", recipe(own), runner=edited)


def test_unavailable_service_stops_the_run_which_can_resume(
    kg: Path, sources: Path, expected: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, to = Annotator.annotate, tmp_path / "d.jsonl"

    def down(self: Annotator, article: Article) -> Document:
        if article.title == "Text 50":
            raise ServiceError("no answer")
        return real(self, article)

    monkeypatch.setattr(Annotator, "annotate", down)
    with pytest.raises(ServiceError):
        annotate([sources], to, recipe(kg))
    assert not to.exists()
    monkeypatch.setattr(Annotator, "annotate", real)
    annotate([sources], to, recipe(kg))
    assert to.read_bytes() == expected


def test_output_never_overwrites_graph_or_sources(kg: Path, tmp_path: Path) -> None:
    source = tmp_path / "a.txt"
    source.write_text("Note\n\nClara Dunn.")
    for to in (kg, source, tmp_path):
        with pytest.raises(ConfigError, match="is a folder, the graph or a source"):
            annotate([source], to, recipe(kg))
    with pytest.raises(KglmError):
        annotate([source], source / "d.jsonl", recipe(kg))
    assert source.read_text() == "Note\n\nClara Dunn."


def test_output_may_be_in_the_directory_of_the_sources(kg: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Note\n\nClara Dunn.")
    to = tmp_path / "d.jsonl"
    for _ in range(2):
        assert annotate([tmp_path], to, recipe(kg)).documents == 1
    (tmp_path / "d.jsonl.parts").mkdir()
    (tmp_path / "d.jsonl.parts" / "00000.jsonl").write_text("{}")
    assert annotate([tmp_path], to, recipe(kg)).documents == 1, "shards of an earlier run are not sources"


def test_corrected_file_is_read_again(kg: Path, tmp_path: Path) -> None:
    source, to = tmp_path / "a.jsonl", tmp_path / "d.jsonl"
    source.write_text("{\n")
    with pytest.raises(DataError, match="no article could be annotated"):
        annotate([source], to, recipe(kg))
    source.write_text('{"title": "A", "text": "Clara Dunn."}')
    assert annotate([source], to, recipe(kg)).documents == 1


def test_no_valid_article_is_an_error(kg: Path, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("{\n")
    with pytest.raises(DataError, match="no article could be annotated"):
        annotate([tmp_path / "a.jsonl"], tmp_path / "d.jsonl", recipe(kg))
    with pytest.raises(DataError):
        annotate([tmp_path / "missing.txt"], tmp_path / "d.jsonl", recipe(kg))


def test_annotate_command(kg: Path, sources: Path, expected: bytes, tmp_path: Path, command: Command) -> None:
    to, pages, anchors = tmp_path / "d.jsonl.gz", tmp_path / "pages", tmp_path / "anchors.json"
    words = ["annotate", str(sources), "--kg", str(kg), "--to", str(to), "--workers", "1", "--html", str(pages)]
    done = command(*words, "--anchors-to", str(anchors), "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["documents"] == COUNT - 1 and len(found["failures"]) == 2 and found["tokens"] > 1000
    assert len(list(read_documents(to))) == COUNT - 1
    assert len(list(pages.iterdir())) == COUNT, "one per document, and the index"
    with KnowledgeGraph.open(kg) as graph:
        assert len(Anchors.load(anchors, graph)) == 0, "no text has a link"
    words = ["annotate", str(sources), "--kg", str(kg), "--to", str(to), "--workers", "1"]
    before, refused = to.read_bytes(), command(*words)
    assert refused.returncode == 2 and "give another --to, or overwrite it with --force" in refused.stderr
    for option, output in (("--anchors-to", anchors), ("--html", pages)):
        other = [word if word != str(to) else str(tmp_path / "other.jsonl") for word in words]
        assert f"give another {option}" in command(*other, option, str(output)).stderr
    assert to.read_bytes() == before and not (tmp_path / "other.jsonl").exists()
    again = command(*words, "--prune", "--force")
    assert again.returncode == 0 and "left out:" in again.stdout and "no name is linked" not in again.stderr
    assert command("annotate", str(sources), "--kg", str(kg), "--to", str(to), "--workers", "-1").returncode == 2


HOSTILE = {
    "quotes \" ' and\nlines": "Clara Dunn was born in Ulm.",
    "rtl": "ولدت Clara Dunn في Ulm.",
    "zero width": "Clara\u200b Dunn was \ufeffborn in\u200d Ulm.",
    "controls": "Clara Dunn\x00\x07 was born in Ulm.",
    "signs": ". . . , , ; ' ' @@END@@ @@START@@ Clara Dunn . . Ulm .",
    "long word": "Clara Dunn " + "x" * 100_000 + " Ulm",
    "very old": "Clara Dunn was there in 4712 BC and in Ulm.",
    "many": "Clara Dunn met " + "Ulm, " * 3000,
}


def test_hostile_texts_and_names_are_annotated(tmp_path: Path) -> None:
    facts = (*FACTS, ("Q1", "P569", "T::9::-4712-00-00T00:00:00Z"), ("Q1", "P1", "Q7"), ("Q1", "P1", "Q8"))
    names = NAMES | {"Q7": (".",), "Q8": ("", "the")}
    kg = make_store(tmp_path / "kg", facts, names)
    lines = [json.dumps({"title": title, "text": text}) for title, text in HOSTILE.items()]
    lines += [json.dumps({"title": "wiki", "wikitext": "[[" * 5000 + "Clara Dunn" + "{{" * 5000})]
    lines += [json.dumps({"title": "html", "html": "<p>Clara <b>Dunn" + "<div>" * 5000 + "<table>" * 500 + " Ulm"})]
    (tmp_path / "texts.jsonl").write_text("\n".join(lines))
    report = annotate([tmp_path / "texts.jsonl"], tmp_path / "d.jsonl", recipe(kg))
    documents = {document.title: document for document in read_documents(tmp_path / "d.jsonl")}
    assert not report.failures and report.documents >= len(HOSTILE)
    for document in documents.values():
        assert {mention.id for mention in document.mentions}.isdisjoint({"Q7", "Q8"})
    assert {"Q1", "Q2"} <= {mention.id for mention in documents["rtl"].mentions}
    assert "T::9::-4712-00-00T00:00:00Z" in {mention.id for mention in documents["very old"].mentions}
    assert len(documents["many"].mentions) > 1000


@pytest.mark.slow
def test_hub_with_two_hundred_thousand_facts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The facts of the hub are read a few times for the whole text, not for each of its 600 mentions."""
    many = [(f"Q{n}", "P17", "Q1") for n in range(10, 200_010)]
    names = {"Q1": ("Union",), "Q2": ("Union City",), "Q77": ("Village",)}
    kg = make_store(tmp_path / "kg", (*many, ("Q1", "P36", "Q2")), names)
    (tmp_path / "a.txt").write_text("Hub\n\n" + "In Union lies Union City, and Village too. " * 200)
    read, edges = [], KnowledgeGraph.edges

    def counted(self: KnowledgeGraph, number: int) -> Any:
        read.append(len(edges(self, number).tail))
        return edges(self, number)

    monkeypatch.setattr(KnowledgeGraph, "edges", counted)
    report = annotate([tmp_path / "a.txt"], tmp_path / "d.jsonl", recipe(kg))
    assert report.counts["source NEL"] + report.counts["source KG"] >= 590
    assert sum(read) < 10 * len(many), f"{sum(read):,} edges read"


def test_texts_without_a_known_name_are_reported(kg: Path, tmp_path: Path, command: Command) -> None:
    (tmp_path / "note.txt").write_text("the weather was fine, and nobody was there.")
    words = ["annotate", str(tmp_path / "note.txt"), "--kg", str(kg), "--workers", "1", "--to"]
    left = command(*words, str(tmp_path / "d.jsonl"))
    assert left.returncode == 0 and "warning: no name is linked in 1 text: " in left.stderr
    assert "kglm kg find KG NAME" in left.stderr and "--min-p 0.2" in left.stderr
    assert "leave out --no-linker" in command(*words, str(tmp_path / "e.jsonl"), "--no-linker").stderr


def test_shards_that_nothing_can_resume_are_removed(
    kg: Path, sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that fails before its first document; and one with other settings, with `force`."""
    to, parts = tmp_path / "d.jsonl", tmp_path / "d.jsonl.parts"

    def fails(_jobs: object) -> Iterator[Shard]:
        raise KglmError("out of order")

    with pytest.raises(KglmError, match="out of order"):
        annotate([sources], to, recipe(kg), runner=fails)
    assert not parts.exists()

    def first_only(jobs: Iterable[pipeline.Job]) -> Iterator[Shard]:
        yield pipeline.annotate_shard(next(iter(jobs)))
        raise KglmError("out of order")

    with pytest.raises(KglmError, match="out of order"):
        annotate([sources], to, recipe(kg), runner=first_only)
    assert parts.exists()
    other = recipe(kg)._replace(lists=True)
    with pytest.raises(KglmError, match="start again with --force"):
        annotate([sources], to, other)
    assert annotate([sources], to, other, force=True).documents == COUNT - 1 and not parts.exists()
