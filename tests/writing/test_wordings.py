"""The file of wordings: held-out wordings never occur in training texts, and malformed files are refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kglm.errors import DataError
from kglm.kg.graph import KnowledgeGraph
from kglm.writing.articles import Writer
from kglm.writing.english import verb
from kglm.writing.wordings import Slot, Wording, Wordings, read_wordings


def skeleton(wording: Wording, preposition: str = "on") -> str:
    """A wording with placeholders instead of entities and relations; dates come after `preposition`."""
    parts = [piece if isinstance(piece, str) else _placeholder(piece, preposition) for piece in wording.pieces]
    return "".join(parts).casefold()


def _placeholder(slot: Slot, preposition: str) -> str:
    if slot.kind == "fact":
        return {"a": "a N", "on": f"{preposition} N"}.get(slot.form, "N")
    names = {"subject": "N", "object": "N", "possessive": "N's", "kind": "kind", "verb": slot.form, "who": "who"}
    return names.get(slot.kind) or slot.options[0]


_WORD = r"[A-Z0-9][^\s,;()]*"
_NAME = rf"{_WORD}(?: (?:{_WORD}|of|the|and|for|in|da|van|de|[–&]))*(?:, \d{{4}})?"
_SUBJECT = rf"(?:He|She|It|They|His|Her|Its|Their|(?:The )?{_NAME}|The(?: [a-z]+){{1,3}}(?:'s)?)"
_OBJECT = rf"(?:an? [\w. -]+|(?:on |in )?(?:the )?{_NAME}(?:(?:, | and )(?:the )?{_NAME})*|(?:the )?[a-z -]+)"


def as_pattern(wording: Wording) -> re.Pattern[str]:
    """Regular expression for the sentences of a wording."""
    parts = [re.escape(piece) if isinstance(piece, str) else _slot_pattern(piece) for piece in wording.pieces]
    return re.compile("".join(parts))


def _slot_pattern(slot: Slot) -> str:
    if slot.kind in ("number", "gender"):
        return f"(?:{'|'.join(map(re.escape, slot.options))})"
    if slot.kind == "verb":
        ways = {verb(slot.form, plural=plural, past=past) for plural in (True, False) for past in (True, False)}
        return f"(?:{'|'.join(sorted(ways))})"
    return _SUBJECT if slot.kind in ("subject", "possessive") else _OBJECT


def sentences(writer: Writer, nodes: list[int], split: str) -> list[str]:
    texts = [writer.record(node, number, wordings=split)["text"] for node in nodes for number in range(2)]  # type: ignore[arg-type]
    return [line for text in texts for line in re.split(r"(?<=\.) |\n\n", text)]


def test_a_fifth_of_the_wordings_is_held_out(wordings: Wordings) -> None:
    every = list(wordings.all())
    assert 0.15 < sum(wording.held for wording in every) / len(every) < 0.3
    frequent = "P36 P30 P17 P131 P37 P38 P47 P571 P1082 P569 P570 P19 P20 P26 P27 P106 P69 P166 P50 P577 P57 P161"
    for relation in frequent.split():
        group = wordings.sentences[relation]
        assert sum(wording.held for wording in group) >= 2
        assert sum(not wording.held for wording in group) >= 9
        assert any(wording.held and wording.ends_in_object for wording in group)
    assert len(wordings.fillers) >= 60


def test_no_held_out_wording_is_part_of_a_training_wording(wordings: Wordings) -> None:
    train = "\n".join(skeleton(w, with_) for w in wordings.all() if not w.held for with_ in ("on", "in"))
    held = [wording for wording in wordings.all() if wording.held and wording.role == "sentence"]
    assert [wording.text for wording in held if skeleton(wording) in train] == []
    questions = [skeleton(wording).removesuffix("n").rstrip() + " " for wording in held if wording.ends_in_object]
    assert [question for question in questions if question in train] == []


_TENSE = re.compile(r"\b(?:was|are|were)\b")


def test_no_training_wording_has_a_held_out_predicate(wordings: Wordings) -> None:
    """ "Who was born on" contains "was born on": subject and tense do not matter."""
    train = [
        ", " * (wording.role == "aside") + _TENSE.sub("is", skeleton(wording, preposition))
        for wording in (*wordings.all(), *wordings.fillers)
        for preposition in ("on", "in")
        if not wording.held
    ]
    held = [wording for wording in wordings.all() if wording.held and wording.role == "sentence"]
    leading = {"subject": "n", "possessive": "n's"}
    found = []
    for wording in held:
        first = wording.pieces[0]
        if isinstance(first, Slot) and first.kind in leading:
            for preposition in ("on", "in"):
                rest = _TENSE.sub("is", skeleton(wording, preposition)).removeprefix(leading[first.kind])
                pattern = re.compile(re.escape(rest) + r"\b")
                found += [(wording.text, each) for each in train if pattern.search(each)]
    assert found == []
    asides = [wording for wording in wordings.all() if wording.held and wording.role == "aside"]
    assert [w.text for w in asides if any(_TENSE.sub("is", f", {skeleton(w)}") in each for each in train)] == []


def test_most_words_of_held_out_wordings_occur_in_training_wordings(wordings: Wordings) -> None:
    """A model that has read only training texts has seen the words of a question, if not the question."""
    seen = {word for w in (*wordings.all(), *wordings.fillers) if not w.held for word in _words(w)}
    held = [wording for wording in wordings.all() if wording.held]
    assert sum(not _words(wording) <= seen for wording in held) < len(held) / 10
    for relation in ("P36", "P19", "P569", "P26", "P131", "P50"):
        for wording in wordings.sentences[relation]:
            assert _words(wording) <= seen, wording.text


def _words(wording: Wording) -> set[str]:
    return set(re.findall(r"[a-z]+", skeleton(wording)))


def test_spouses_are_never_joined(wordings: Wordings) -> None:
    together = [wording for wording in wordings.sentences["P26"] if wording.objects not in ("one", "any")]
    asides = [wording for wording in wordings.asides["P26"] if wording.objects not in ("one", "any")]
    assert together == asides == []


def test_held_wordings_are_never_in_training_texts(writer: Writer, nodes: list[int]) -> None:
    held = [as_pattern(wording) for wording in writer.wordings.all() if wording.held and wording.role == "sentence"]
    for line in sentences(writer, nodes, "train"):
        assert not any(pattern.fullmatch(line.rstrip(".")) for pattern in held), line
    lines = sentences(writer, nodes, "held")
    assert sum(any(pattern.fullmatch(line.rstrip(".")) for pattern in held) for line in lines) > len(lines) / 5


GOOD = """
[sorts]
city = ["city"]
[[opening]]
say = ["{X} {is} {a P31}"]
[[relation.P36]]
say = ["{X's} capital is {Y}"]
"""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GOOD + 'held = ["The capital of {X} is {Z}"]', r"relation\.P36 1, held 1: unknown slot \{Z\}; use"),
        (GOOD + 'held = ["The capital of {X} is {Y"]', "a brace without its partner"),
        (GOOD + 'held = ["The capital of {X}"]', "states no fact"),
        (GOOD + 'held = ["The capital is {Y}"]', "has no subject"),
        (GOOD + 'held = ["{X\'s} capital is {Y}"]', "both held out and used for training"),
        (GOOD + 'held = ["The capital of {X} is {Y}."]', "ends in a full stop"),
        (GOOD + 'aside = ["{X}, whose capital is {Y}"]', "names X"),
        (GOOD + 'of = ["town"]', "unknown sort 'town'; use one of city"),
        (GOOD + 'objects = "many"', r"relation.*objects.*invalid enum value"),
        (GOOD + "colour = 3", "unknown field"),
        (GOOD.replace("relation.P36", "relation.capital"), "is not a relation id; write P"),
        (GOOD.replace("{a P31}", "{a Y}"), "without a relation; name it"),
        (GOOD + '[the]\npatterns = ["("]', "is not a regular expression"),
        (GOOD + "say = [", "is not TOML"),
        ("", "missing required field"),
    ],
)
def test_malformed_file_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "wordings.toml"
    path.write_text(text)
    with pytest.raises(DataError, match=message) as error:
        read_wordings(path)
    assert str(path) in str(error.value) and error.value.remedy


def test_small_file_of_wordings_is_enough(toy: KnowledgeGraph, tmp_path: Path) -> None:
    path = tmp_path / "wordings.toml"
    path.write_text(GOOD)
    writer = Writer(toy, read_wordings(path))
    assert writer.record(toy.number("Q142"))["text"] == "France is a country. Its capital is Paris."
