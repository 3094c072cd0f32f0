"""EntityNLM on toys by brute force: its formulas word for word, and every annotation of a text."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from kglm.model.buckets import bucket
from kglm.model.encoders.awd_lstm import EncoderConfig
from kglm.model.entity_nlm import EntityNlm
from kglm.text.document import START, Document, Mention
from support.toys import Toy

Span = tuple[int, int, str]
"""First target, words, entity."""
IDS = ("Q1", "Q2", "Q3")
LONGEST = 3


def made(toy: Toy, kind: type[EntityNlm] = EntityNlm) -> EntityNlm:
    generator = torch.Generator().manual_seed(3)
    config = EncoderConfig(embedding=4, hidden=5, layers=2)
    model = kind(config, len(toy.vocabulary), generator=generator, longest=LONGEST)
    for parameter in model.parameters():
        parameter.data += 0.7 * torch.randn(parameter.shape, generator=generator)
    return model.double().eval()  # type: ignore[return-value]


def document(words: list[str], spans: list[Span]) -> Document:
    mentions = [Mention(start + 1, start + 1 + length, id, "KG", ("@@NEW@@",), (id,)) for start, length, id in spans]
    return Document("d", [START, *words], mentions)


def log_joint(toy: Toy, model: EntityNlm, words: list[str], spans: list[Span]) -> float:
    """log p(x, z) by the formulas, one word after the other."""
    indices = toy.vocabulary.encode([START, *words])
    with torch.no_grad():
        h_TH = model.encoder(torch.tensor([indices])).h_BTD[0]
        vector: dict[str, Tensor] = {}
        last: dict[str, int] = {}
        total, current, left = 0.0, None, 0
        new_H = model.new_H / model.new_H.norm()
        begins = {start: (length, id) for start, length, id in spans}
        for t, word in enumerate(words):
            h_H = h_TH[t]
            if t and current is not None and last[current] == t - 1:
                old = vector.get(current, new_H)
                delta = torch.sigmoid(h_H @ model.change_HH @ old)
                mixed = delta * old + (1 - delta) * h_H
                vector[current] = mixed / mixed.norm()
            if not left:
                mention = model.mention_head(h_H).softmax(0)
                total += math.log(mention[int(t in begins)])
                if t in begins:
                    left, id = begins[t]
                    scores = {
                        each: h_H @ model.entity_HH @ vector[each] + model.distance_Q[bucket(t - last[each])]
                        for each in last
                    }
                    scores["new"] = h_H @ model.entity_HH @ new_H + model.new_bias
                    chosen = scores[id] if id in last else scores["new"]
                    total += float(chosen - torch.stack(list(scores.values())).logsumexp(0))
                    lengths = model.length_head(torch.cat([h_H, vector.get(id, new_H)])).log_softmax(0)
                    total += float(lengths[min(left, LONGEST) - 1])
                    current = id
            if left:
                left, last[current] = left - 1, t  # type: ignore[index]
            said = torch.zeros_like(h_H) if current is None else vector.get(current, new_H)
            logits = model.encoder.embedding.weight @ (h_H + said @ model.word_HH) + model.word_bias_V
            total += float(logits.log_softmax(0)[toy.vocabulary.encode([word])[0]])
        return total


def all_spans(length: int) -> list[list[Span]]:
    """Every annotation of so many words, entities numbered as they come; a mention may last beyond the end."""
    found: list[list[Span]] = []

    def go_on(t: int, spans: list[Span], known: int) -> None:
        if t >= length:
            found.append(spans)
            return
        go_on(t + 1, spans, known)
        for entity in range(min(known + 1, len(IDS))):
            for words in range(1, LONGEST + 1):
                go_on(t + words, [*spans, (t, words, IDS[entity])], max(known, entity + 1))

    go_on(0, [], 0)
    return found
