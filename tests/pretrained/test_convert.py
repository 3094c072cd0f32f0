"""Converting models: GGUF files and directories, damage, and what does not fit."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from kglm.errors import DataError
from kglm.files.user_cache import cache_folder
from kglm.pretrained.base import BaseModel
from kglm.pretrained.subwords import tokenizing
from support.causal import save_english, save_gguf

pytest.importorskip("transformers", reason="the extra hf is not installed")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KGLM_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def english(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_english(tmp_path_factory.mktemp("english"), context=96, hidden=64)


def only(cache: Path) -> Path:
    [home] = [each for each in (cache / "models").iterdir() if not each.name.startswith(".")]
    return home


def test_it_is_converted_once(english: Path, cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = BaseModel.open(english, dtype=torch.float32)
    written = (only(cache) / "weights.safetensors").stat().st_mtime_ns
    assert "converting the language model" in capsys.readouterr().err
    second = BaseModel.open(english, dtype=torch.float32)
    assert capsys.readouterr().err == ""
    assert (only(cache) / "weights.safetensors").stat().st_mtime_ns == written
    ids = first.subwords.encode("the 1961 game").ids
    assert torch.equal(first.log_probs(ids), second.log_probs(ids))
    assert first.digest == second.digest


@pytest.mark.parametrize("name", ["weights.safetensors", "model.json", "tokenizer.json", "manifest.json"])
def test_a_damaged_conversion_is_made_again(
    english: Path, cache: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = BaseModel.open(english, dtype=torch.float32).log_probs([1, 2, 3])
    content = bytearray((only(cache) / name).read_bytes())
    content[len(content) // 2] ^= 4
    (only(cache) / name).write_bytes(content)
    assert torch.equal(BaseModel.open(english, dtype=torch.float32).log_probs([1, 2, 3]), expected)
    assert re.search(r"note: the language model \S+ is made again: ", capsys.readouterr().err)


def test_a_changed_source_is_another_model(english: Path, cache: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(english, tmp_path / english.name))
    before = BaseModel.open(copy).digest
    settings = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps({**settings, "rms_norm_eps": 1e-3}))
    assert BaseModel.open(copy).digest != before


def test_two_processes_convert_at_once(english: Path, cache: Path) -> None:
    code = f"from kglm.pretrained.base import BaseModel; print(BaseModel.open({str(english)!r}).digest)"
    pipe = subprocess.PIPE
    processes = [subprocess.Popen([sys.executable, "-c", code], stdout=pipe, stderr=pipe, text=True) for _ in range(2)]
    said = [process.communicate() for process in processes]
    digests, notes = {out for out, _ in said}, "".join(error for _, error in said)
    assert [process.returncode for process in processes] == [0, 0]
    assert len(digests) == 1
    assert only(cache)
    assert notes.count("converting the language model") == 1


@pytest.fixture(scope="module")
def file(english: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_gguf(english, tmp_path_factory.mktemp("gguf") / "tiny.gguf")


class TestGguf:
    def test_it_is_the_model_that_transformers_reads(self, file: Path) -> None:
        from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

        where = {"pretrained_model_name_or_path": file.parent, "gguf_file": file.name}
        model = LlamaForCausalLM.from_pretrained(**where, dtype=torch.float32)
        base = BaseModel.open(file, dtype=torch.float32)
        ids = base.subwords.encode("It isn't the 1961 game.").ids
        assert PreTrainedTokenizerFast.from_pretrained(**where)("It isn't the 1961 game.")["input_ids"] == ids
        with torch.no_grad():
            expected = model(torch.tensor([ids])).logits
        found = base.model.logits(base.model.hidden(torch.tensor([ids])).last_BTD)
        torch.testing.assert_close(found, expected, rtol=0.02, atol=0.02 * float(expected.abs().max()))

    def test_packed_and_unpacked_weights_agree(self, file: Path) -> None:
        base = BaseModel.open(file, dtype=torch.bfloat16)
        ids = base.subwords.encode("It isn't a side-scrolling game, it's the 1961 game.").ids
        cache = base.model.new_cache()
        steps = [base.model.hidden(torch.tensor([[id]]), cache).last_BTD[0, -1] for id in ids]
        whole = base.model.hidden(torch.tensor([ids])).last_BTD[0]
        torch.testing.assert_close(torch.stack(steps).float(), whole.float(), rtol=0.1, atol=0.15)

    @pytest.mark.parametrize("share", [0.0, 0.001, 0.2, 0.9, 0.999])
    def test_a_truncated_file_is_refused_and_nothing_is_left(self, file: Path, cache: Path, share: float) -> None:
        part = file.with_name("part.gguf")
        part.write_bytes(file.read_bytes()[: int(share * file.stat().st_size)])
        with pytest.raises(DataError, match=r"part\.gguf"):
            BaseModel.open(part)
        assert not list((cache / "models").iterdir())

    @pytest.mark.parametrize("count", [1 << 40, (1 << 64) - 1])
    def test_counts_that_are_larger_than_the_file_are_refused(self, file: Path, cache: Path, count: int) -> None:
        content = bytearray(file.read_bytes())
        place = content.index(b"tokenizer.ggml.token_type") + len("tokenizer.ggml.token_type") + 8
        content[place : place + 8] = count.to_bytes(8, "little")
        (bad := file.with_name("bad.gguf")).write_bytes(content)
        with pytest.raises(DataError, match=r"bad\.gguf: is not a complete GGUF file \(.* bytes at byte"):
            BaseModel.open(bad)

    def test_a_name_that_is_no_text_is_refused(self, file: Path, cache: Path) -> None:
        content = bytearray(file.read_bytes())
        place = content.index(b"general.architecture") + len("general.architecture") + 4 + 8
        content[place] = 0x80
        (bad := file.with_name("bad.gguf")).write_bytes(content)
        with pytest.raises(DataError, match=r"bad\.gguf: is not a complete GGUF file"):
            BaseModel.open(bad)


class TestRefused:
    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("num_hidden_layers", "2"),
            ("max_position_embeddings", -1),
            ("hidden_size", 1 << 40),
            ("num_attention_heads", 0),
            ("rms_norm_eps", float("nan")),
            ("rms_norm_eps", 1e30),
        ],
    )
    def test_sizes_out_of_range(self, english: Path, tmp_path: Path, name: str, value: object) -> None:
        copy = Path(shutil.copytree(english, tmp_path / "copy"))
        settings = json.loads((copy / "config.json").read_text())
        (copy / "config.json").write_text(json.dumps({**settings, name: value}))
        with pytest.raises(DataError, match=r"config\.json: is n"):
            BaseModel.open(copy)

    def test_weights_that_are_not_finite(self, english: Path, tmp_path: Path) -> None:
        from safetensors.torch import load_file, save_file

        copy = Path(shutil.copytree(english, tmp_path / "copy"))
        weights = load_file(copy / "model.safetensors")
        weights["model.norm.weight"][3] = torch.nan
        save_file(weights, copy / "model.safetensors")
        with pytest.raises(DataError, match="norm has entries that are NaN or infinite"):
            BaseModel.open(copy)

    def test_scores_that_are_not_finite(self, english: Path, tmp_path: Path) -> None:
        from safetensors.torch import load_file, save_file

        copy = Path(shutil.copytree(english, tmp_path / "copy"))
        weights = load_file(copy / "model.safetensors")
        weights["model.norm.weight"] *= 1e38
        save_file(weights, copy / "model.safetensors")
        with pytest.raises(DataError, match="its scores are not finite"):
            BaseModel.open(copy, dtype=torch.float32).log_probs([1, 2, 3])

    def test_a_tokenizer_of_another_model(self, english: Path, tmp_path: Path) -> None:
        copy = Path(shutil.copytree(english, tmp_path / "copy"))
        tokens = json.loads((copy / "tokenizer.json").read_text())
        tokens["model"]["vocab"]["more"] = 5000
        (copy / "tokenizer.json").write_text(json.dumps(tokens))
        with pytest.raises(DataError, match="the tokenizer has a subword 5000, the model"):
            BaseModel.open(copy)

    def test_code_of_a_model_is_not_run_and_nobody_is_asked(self, english: Path, tmp_path: Path) -> None:
        copy = Path(shutil.copytree(english, tmp_path / "copy"))
        settings = json.loads((copy / "tokenizer_config.json").read_text())
        settings |= {"tokenizer_class": "Own", "auto_map": {"AutoTokenizer": ["own.Own", "own.OwnFast"]}}
        (copy / "tokenizer_config.json").write_text(json.dumps(settings))
        (copy / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nclass Own: pass\nclass OwnFast: pass\n")
        with pytest.raises(DataError, match="no tokenizer that can be used"):
            BaseModel.open(copy)
        assert not (tmp_path / "ran").exists()

    def test_a_panic_of_the_tokenizer_library(self, english: Path) -> None:
        class PanicException(BaseException):
            """As Rust's libraries raise it: it is no Exception."""

        def panic() -> None:
            raise PanicException("range end index 7")

        with (
            pytest.raises(DataError, match=r"no tokenizer that can be used \(range end index 7\)"),
            tokenizing(english),
        ):
            panic()
        with pytest.raises(KeyboardInterrupt), tokenizing():
            raise KeyboardInterrupt

    def test_no_tokenizer(self, english: Path, tmp_path: Path) -> None:
        copy = Path(shutil.copytree(english, tmp_path / "copy"))
        (copy / "tokenizer.json").unlink()
        (copy / "tokenizer_config.json").unlink()
        with pytest.raises(DataError, match="tokenizer"):
            BaseModel.open(copy)

    def test_no_weights(self, english: Path, tmp_path: Path) -> None:
        copy = Path(shutil.copytree(english, tmp_path / "copy"))
        (copy / "model.safetensors").unlink()
        with pytest.raises(DataError, match="has no weights in the format safetensors"):
            BaseModel.open(copy)

    def test_sizes_that_do_not_fit(self, english: Path, tmp_path: Path) -> None:
        copy = Path(shutil.copytree(english, tmp_path / "copy"))
        settings = json.loads((copy / "config.json").read_text())
        (copy / "config.json").write_text(json.dumps({**settings, "intermediate_size": 129}))
        with pytest.raises(DataError, match=r"0.gate_up.weight has shape \(256, 64\) instead of \(258, 64\)"):
            BaseModel.open(copy)

    def test_no_model(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match="does not exist; give a directory"):
            BaseModel.open(tmp_path / "nothing")


def test_without_a_home_the_cache_is_temporary(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("KGLM_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HOME", str(tmp_path / "file"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert cache_folder().parent == tmp_path
    assert "set KGLM_CACHE to choose a folder" in capsys.readouterr().err
