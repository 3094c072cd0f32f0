"""Readers of pretrained language models (as others save them, and as kglm converts them) and of trained heads."""

from __future__ import annotations

import json
import os
import random
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import torch
from benchmarks.faults.mutations import mutate_bytes, mutate_json
from benchmarks.faults.reader import Reader, together

from kglm.files.artefact import Artefact, new_artefact
from kglm.heads.model import Heads
from kglm.heads.options import HeadsConfig
from kglm.heads.store import read_heads, write_heads
from kglm.pretrained.base import BaseModel

sys.path.append(str(Path(__file__).resolve().parents[2] / "tests"))
from support.causal import save_english, save_gguf

TEXT = "It isn't the 1961 game. Zoë's \n bowls\u2028 <|endoftext|>"
NUMBERS = (
    0,
    1,
    2,
    3,
    255,
    1 << 16,
    (1 << 31) - 1,
    1 << 31,
    (1 << 32) - 1,
    1 << 40,
    (1 << 63) - 1,
    1 << 63,
    (1 << 64) - 1,
)


@contextmanager
def _cache(folder: Path) -> Iterator[None]:
    """Convert models to this folder, which is removed afterwards."""
    before = os.environ.get("KGLM_CACHE")
    os.environ["KGLM_CACHE"] = str(folder)
    try:
        yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.environ.pop("KGLM_CACHE")
        if before is not None:
            os.environ["KGLM_CACHE"] = before


def _use(base: BaseModel) -> None:
    """Encode, decode and score a text."""
    encoded = base.subwords.encode(TEXT)
    assert len(encoded.ids) == len(encoded.ends)
    base.subwords.decode(encoded.ids)
    assert len(base.subwords.texts) == len(base.subwords)
    found = base.log_probs(encoded.ids[:8], window=4, stride=2)
    assert bool(torch.isfinite(found).all()), "scores that are not finite"


def _english(home: Path) -> Path:
    directory = home / "english"
    if not directory.exists():
        save_english(directory, context=96, hidden=32)
    return directory


def directory(name: str, home: Path) -> Reader:
    """A file of a directory of Hugging Face."""
    source = home / f"model with another {name}"
    shutil.copytree(_english(home), source)
    path = source / name

    def read(data: bytes) -> None:
        path.write_bytes(data)
        with _cache(home / "cache"):
            _use(BaseModel.open(source, dtype=torch.float32))

    samples = [path.read_bytes()]
    if name == "tokenizer_config.json":
        template = "{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] }}<|endoftext|>{% endfor %}"
        samples.append(json.dumps(json.loads(samples[0]) | {"chat_template": template}).encode())
    return Reader(samples, mutate_json if name.endswith("json") else mutate_tensors, read)


def mutate_tensors(data: bytes, rng: random.Random) -> bytes:
    """Mutate the header of a safetensors file, its length, or any bytes."""
    end = 8 + int.from_bytes(data[:8], "little")
    match rng.randrange(4):
        case 0:
            return mutate_bytes(data, rng)
        case 1:
            return rng.choice(NUMBERS).to_bytes(8, "little") + data[8:]
        case 2:
            content = bytearray(data)
            at = rng.randrange(end, len(data) - 2)
            content[at : at + 2] = rng.choice((b"\xff\x7f", b"\x80\x7f", b"\x80\xff", b"\xff\xff"))  # NaN, infinite
            return bytes(content)
        case _:
            header = mutate_json(data[8:end], rng)
            return len(header).to_bytes(8, "little") + header + data[end:]


def gguf(home: Path) -> Reader:
    """A GGUF file, its header more often than its weights."""
    path = home / "english.gguf"
    save_gguf(_english(home), path)
    sample = path.read_bytes()
    path.unlink()
    header = sample.index(b"blk.1.ffn_down.weight") + 100

    def mutate(data: bytes, rng: random.Random) -> bytes:
        if rng.random() < 0.2:
            return mutate_bytes(data, rng)
        content = bytearray(data)
        for _ in range(rng.choice((1, 1, 2, 4))):
            at = rng.choice(
                (rng.randrange(header), rng.randrange(64), content.find(b"blk.", rng.randrange(header)) + 20)
            )
            size = rng.choice((1, 4, 8))
            match rng.randrange(4):
                case 0:
                    content[at] ^= 1 << rng.randrange(8)
                case 1:
                    del content[at : at + size]
                case 2:
                    content[at : at + size] = (rng.choice(NUMBERS) % (1 << 8 * size)).to_bytes(size, "little")
                case _:
                    content[at:at] = rng.randbytes(size)
        return bytes(content[: rng.randrange(len(content))] if rng.random() < 0.05 else content)

    def read(data: bytes) -> None:
        path.write_bytes(data)
        with _cache(home / "cache of gguf"):
            _use(BaseModel.open(path, dtype=torch.float32))

    return Reader([sample], mutate, read)


def converted(name: str, home: Path) -> Reader:
    """A file of a converted model; it is converted again if it is damaged."""
    source, cache, kept = _english(home), home / f"cache for {name}", home / f"kept for {name}"
    with _cache(cache):
        BaseModel.open(source, dtype=torch.float32)
        shutil.copytree(cache, kept)
    [model] = [path.name for path in (kept / "models").iterdir() if not path.name.startswith(".")]

    def read(data: bytes) -> None:
        with _cache(cache):
            shutil.copytree(kept, cache)
            (cache / "models" / model / name).write_bytes(data)
            if name != "manifest.json":
                Artefact.open(cache / "models" / model, check=False).accept()
            _use(BaseModel.open(source, dtype=torch.float32))

    mutate = mutate_json if name.endswith("json") else mutate_tensors
    return Reader([(kept / "models" / model / name).read_bytes()], mutate, read)


def heads(name: str, home: Path) -> Reader:
    """A file of trained heads."""
    with _cache(home / "cache"):
        base = BaseModel.open(_english(home), dtype=torch.float32)
    trained = Heads(HeadsConfig(state=8, relation=4), base.model.config.hidden, 6)
    place = home / f"heads with another {name}"
    with new_artefact(place) as writer:
        write_heads(writer, trained, base)

    def read(data: bytes) -> None:
        (place / name).write_bytes(data)
        if name != "manifest.json" and random.Random(data).random() < 0.9:
            Artefact.open(place, check=False).accept()
        read_heads(Artefact.open(place), base)

    mutate = mutate_json if name.endswith("json") else mutate_tensors
    return Reader([(place / name).read_bytes()], mutate, read)


def _parts(make: Callable[[str, Path], Reader], *names: str) -> Callable[[Path], Reader]:
    return partial(together, {name: partial(make, name) for name in names})


MODEL_READERS: dict[str, Callable[[Path], Reader]] = {}
if all(find_spec(name) for name in ("transformers", "gguf", "tokenizers")):
    files = ("config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors")
    own = ("model.json", "subwords.json", "tokenizer.json", "weights.safetensors", "manifest.json")
    MODEL_READERS = {
        "pretrained: directory": _parts(directory, *files),
        "pretrained: GGUF": gguf,
        "pretrained: converted": _parts(converted, *own),
        "heads": _parts(heads, "heads.json", "heads.safetensors", "manifest.json"),
    }
