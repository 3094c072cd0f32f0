"""The optional sentence encoder and the cache of its vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from kglm.errors import ConfigError
from kglm.text import encoder as module
from kglm.text.encoder import SentenceEncoder, Vectors, encode_cached, encode_for_user


class LettersEncoder:
    """Counts letters; stands for a model, and counts its calls."""

    name = "letters"

    def __init__(self) -> None:
        self.calls = 0

    def encode(self, texts: Sequence[str]) -> Vectors:
        self.calls += 1
        return np.array([[text.count("a"), text.count("b")] for text in texts], np.float32)


def test_vectors_are_kept_by_model_and_texts(tmp_path: Path) -> None:
    encoder = LettersEncoder()
    first = encode_cached(encoder, ["ab", "b"], tmp_path)
    assert encode_cached(encoder, ["ab", "b"], tmp_path).tolist() == first.tolist() == [[1, 1], [0, 1]]
    assert encoder.calls == 1
    encode_cached(encoder, ["b", "ab"], tmp_path)
    assert encoder.calls == 2


def test_damaged_vectors_are_computed_again(tmp_path: Path) -> None:
    encoder = LettersEncoder()
    encode_cached(encoder, ["ab"], tmp_path)
    [array] = tmp_path.rglob("vectors.npy")
    array.write_bytes(array.read_bytes()[:-1] + b"x")
    assert encode_cached(encoder, ["ab"], tmp_path).tolist() == [[1, 1]]
    assert encoder.calls == 2


class TestCacheOfTheUser:
    @pytest.fixture(autouse=True)
    def cache(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.delenv("KGLM_CACHE", raising=False)
        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
        monkeypatch.setenv("HOME", str(tmp_path / "home"))
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        return tmp_path / "home" / ".cache" / "kglm"

    @pytest.mark.parametrize("damage", [lambda content: content[:-1] + b"x", lambda content: b""])
    def test_damaged_vectors_are_computed_again(self, cache: Path, damage: Callable[[bytes], bytes]) -> None:
        encoder = LettersEncoder()
        for _ in range(2):
            assert encode_for_user(encoder, ["ab"]).tolist() == [[1, 1]]
        assert encoder.calls == 1
        [array] = cache.rglob("vectors.npy")
        array.write_bytes(damage(array.read_bytes()))
        assert encode_for_user(encoder, ["ab"]).tolist() == [[1, 1]]
        assert encoder.calls == 2

    def test_vectors_in_a_home_that_cannot_be_written_are_used(
        self, cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        encoder = LettersEncoder()
        encode_for_user(encoder, ["ab"])
        monkeypatch.setattr("os.access", lambda path, mode: not Path(path).is_relative_to(cache))
        encode_for_user(encoder, ["ab"])
        assert encoder.calls == 1 and capsys.readouterr().err == ""
        encode_for_user(encoder, ["b"])  # not there: among the temporary files
        encode_for_user(encoder, ["bb"])
        assert encoder.calls == 3 and capsys.readouterr().err.count("set KGLM_CACHE to choose a folder") == 1


def test_missing_package_is_none_or_an_error_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PACKAGE", "no_such_package_of_weights")
    assert SentenceEncoder.installed() is None
    with pytest.raises(ConfigError, match="no sentence encoder"):
        SentenceEncoder.required()


@pytest.mark.slow
def test_meaning_decides_not_words() -> None:
    encoder = SentenceEncoder.installed()
    if encoder is None:
        pytest.skip("the weights of the sentence encoder are not installed")
    vectors = encoder.encode(["she was born in", "place of birth", "capital city", "she was born in"])
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2] + 0.1
    assert vectors[0] == pytest.approx(vectors[3], abs=1e-6)


@pytest.mark.slow
def test_default_weights_give_the_vectors_of_single_precision() -> None:
    encoder = SentenceEncoder.installed()
    if encoder is None:
        pytest.skip("the weights of the sentence encoder are not installed")
    texts = ["she was born in", "", "It's 中文 É", "the capital of it is " * 100, *["it is"] * module.BATCH]
    default = encoder.encode(texts)
    weights = load_file(
        Path(next(iter(find_spec(module.PACKAGE).submodule_search_locations))) / "model/model.safetensors"
    )  # type: ignore[union-attr,arg-type]
    encoder._model = encoder.model(weights, torch.float32)
    assert (default * encoder.encode(texts)).sum(1).min() > 0.999
    assert encoder.encode([]).shape == (0, default.shape[1])
