"""Tokenizers of pretrained models."""

from __future__ import annotations

import pytest

from kglm.errors import DataError
from kglm.pretrained.subwords import Subwords, SubwordsRecord


def test_a_tokenizer_without_letters_is_refused() -> None:
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel({"x": 0}, unk_token="x"))
    tokenizer.normalizer = tokenizers.normalizers.Replace("a", "")
    with pytest.raises(DataError, match="no tokenizer that can be used"):
        _ = Subwords(tokenizer, SubwordsRecord("x", None)).texts
