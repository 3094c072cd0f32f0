"""Questions with short answers, made from facts: training text for a pretrained model that answers in its chat format.

A question is a wording that ends in its answer: "When was XXXX born? ____". Every relation has questions made of its
names, by their shape; frequent relations of Wikidata also have questions of their own.
"""

from __future__ import annotations

import random
from functools import lru_cache

from kglm.kg.graph import KnowledgeGraph
from kglm.kg.ids import INSTANCE_OF
from kglm.kg.literals.literal import is_date, is_literal, is_quantity
from kglm.text.document import ANSWER, END, START, Document, Mention
from kglm.text.tokenizer import tokenizer
from kglm.writing.linked_sentences import TAIL, Fact, SentenceWriter, Wordings, add_tokens
from kglm.writing.phrases import Shape, phrases_of

HUMAN = "Q5"
BY_SHAPE: dict[Shape, tuple[str, ...]] = {
    "noun": (
        "{what} is the {r} of XXXX? ____",
        "{what} is XXXX's {r}? ____",
        "{what} was the {r} of XXXX? ____",
        "Tell me the {r} of XXXX. ____",
        "XXXX: {r}? ____",
        "What do you know about the {r} of XXXX? ____",
        "Can you tell me XXXX's {r}? ____",
    ),
    "participle": ("{what} was XXXX {r}? ____", "XXXX was {r} {which}? ____"),
    "predicate": ("XXXX {r} {which}? ____", "Do you know what XXXX {r}? ____"),
    "verb": ("XXXX {r} {which}? ____", "Do you know what XXXX {r}? ____"),
    "preposition": ("XXXX is {r} {which}? ____",),
}
"""Questions for the names of a relation; {what} and {which} fit the kind of its tail."""
OF_RELATIONS: dict[str, tuple[str, ...]] = {
    "P569": ("When was XXXX born? ____", "What is XXXX's birthday? ____", "On what date was XXXX born? ____"),
    "P19": ("Where was XXXX born? ____", "Which town is XXXX from? ____", "In which city was XXXX born? ____"),
    "P570": ("When did XXXX die? ____", "On what date did XXXX die? ____"),
    "P20": ("Where did XXXX die? ____", "In which city did XXXX die? ____"),
    "P26": ("Who is XXXX married to? ____", "Who did XXXX marry? ____", "Who is the spouse of XXXX? ____"),
    "P40": ("Who are the children of XXXX? ____", "Name a child of XXXX. ____"),
    "P22": ("Who is the father of XXXX? ____", "Who was XXXX's dad? ____"),
    "P25": ("Who is the mother of XXXX? ____", "Who was XXXX's mum? ____"),
    "P27": ("What nationality is XXXX? ____", "Which country is XXXX a citizen of? ____"),
    "P106": ("What does XXXX do for a living? ____", "What is XXXX's job? ____", "What is XXXX known for doing? ____"),
    "P36": ("What is the capital of XXXX? ____", "Which city is the capital of XXXX? ____"),
    "P35": ("Who is the head of state of XXXX? ____", "Who is the president of XXXX? ____"),
    "P6": ("Who leads the government of XXXX? ____", "Who is the mayor or head of government of XXXX? ____"),
    "P38": ("What currency is used in XXXX? ____", "Which money do people in XXXX pay with? ____"),
    "P37": ("What language is official in XXXX? ____", "Which languages are spoken officially in XXXX? ____"),
    "P30": ("On which continent is XXXX? ____", "Which continent is XXXX part of? ____"),
    "P1082": ("How many people live in XXXX? ____", "How large is the population of XXXX? ____"),
    "P2046": ("How large is XXXX? ____", "What area does XXXX cover? ____"),
    "P2044": ("How high is XXXX? ____", "What is the elevation of XXXX? ____"),
    "P2048": ("How tall is XXXX? ____",),
    "P47": ("Which countries border XXXX? ____", "What does XXXX border on? ____"),
    "P50": ("Who wrote XXXX? ____", "Who is the author of XXXX? ____"),
    "P57": ("Who directed XXXX? ____", "Who was the director of XXXX? ____"),
    "P86": ("Who composed XXXX? ____", "Who wrote the music of XXXX? ____"),
    "P161": ("Who acted in XXXX? ____", "Who starred in XXXX? ____"),
    "P162": ("Who produced XXXX? ____",),
    "P577": ("When was XXXX released? ____", "When did XXXX come out? ____", "When was XXXX published? ____"),
    "P495": ("Which country does XXXX come from? ____", "Where was XXXX made? ____"),
    "P136": ("What genre is XXXX? ____", "What kind of music or film is XXXX? ____"),
    "P264": ("Which label released XXXX's records? ____",),
    "P112": ("Who founded XXXX? ____", "Who started XXXX? ____"),
    "P571": ("When was XXXX founded? ____", "When did XXXX begin? ____"),
    "P159": ("Where is XXXX based? ____", "Where are the headquarters of XXXX? ____"),
    "P169": ("Who runs XXXX? ____", "Who is the chief executive of XXXX? ____"),
    "P127": ("Who owns XXXX? ____",),
    "P176": ("Who makes XXXX? ____", "Which company makes XXXX? ____"),
    "P178": ("Who developed XXXX? ____",),
    "P108": ("Who does XXXX work for? ____", "Where does XXXX work? ____"),
    "P69": ("Where did XXXX go to school? ____", "Where did XXXX study? ____"),
    "P54": ("Which team does XXXX play for? ____", "What team did XXXX play for? ____"),
    "P413": ("What position does XXXX play? ____",),
    "P641": ("What sport does XXXX play? ____",),
    "P102": ("Which party does XXXX belong to? ____",),
    "P39": ("What office did XXXX hold? ____",),
    "P140": ("What religion is XXXX? ____",),
    "P166": ("What prizes did XXXX win? ____", "Which award did XXXX get? ____"),
    "P1303": ("What instrument does XXXX play? ____",),
    "P131": ("Where is XXXX? ____", "In which region is XXXX? ____"),
    "P276": ("Where is XXXX? ____",),
    "P31": ("What is XXXX? ____", "What kind of thing is XXXX? ____"),
    "P361": ("What is XXXX part of? ____",),
    "P84": ("Who designed XXXX? ____", "Who was the architect of XXXX? ____"),
    "P61": ("Who discovered XXXX? ____", "Who invented XXXX? ____"),
    "P138": ("What is XXXX named after? ____",),
    "P509": ("What did XXXX die of? ____",),
    "P119": ("Where is XXXX buried? ____",),
    "P551": ("Where does XXXX live? ____",),
    "P1412": ("What language does XXXX speak? ____",),
    "P21": ("Is XXXX a man or a woman? ____",),
}
"""Questions of single relations."""


class QuestionWriter:
    """Writes questions with their answers for the facts of one graph."""

    def __init__(self, graph: KnowledgeGraph, wordings: Wordings | None = None) -> None:
        """`wordings`: further questions for each relation id."""
        self.graph = graph
        self._sentences = SentenceWriter(graph)
        self._further = wordings or {}
        self._phrases = lru_cache(1 << 12)(
            lambda relation: phrases_of(self.graph.relation_names(self.graph.relation_id(relation)))
        )

    def document(self, fact: Fact, rng: random.Random, title: str, wording: str | None = None) -> Document | None:
        """A question that asks for a fact, with its answer, in a given wording if there is one; None without words."""
        wording = wording or self._wording(fact, rng)
        sentence = None if wording is None else self._sentences.fill(wording, fact, rng)
        if sentence is None:
            return None
        (begin, end, _), (first, last, tail) = sentence.spans
        question = sentence._replace(text=sentence.text[:first].rstrip(), spans=sentence.spans[:1])
        tokens: list[str] = [START]
        mentions: list[Mention] = []
        add_tokens(tokens, mentions, question, self.graph, set())
        tokens.append(ANSWER)
        start = len(tokens)
        tokens += tokenizer().words(sentence.text[first:last])
        id = self.graph.relation_id(fact.relation)
        mentions.append(Mention(start, len(tokens), self.graph.id(tail), "KG", (id,), (self.graph.id(fact.head),)))
        if rng.random() < 0.3:
            tokens.append(".")
        tokens.append(END)
        return Document(title, tokens, mentions) if end > begin and len(mentions) == 2 else None

    def _wording(self, fact: Fact, rng: random.Random) -> str | None:
        own = [*OF_RELATIONS.get(self.graph.relation_id(fact.relation), ())]
        own += [each for each in self._further.get(self.graph.relation_id(fact.relation), ()) if each.endswith(TAIL)]
        phrases = self._phrases(fact.relation)
        if own and (not phrases or rng.random() < 0.6):
            return rng.choice(own)
        if not phrases:
            return None
        phrase = rng.choice(phrases)
        what, which = self._asking(fact.tail)
        return rng.choice(BY_SHAPE[phrase.shape]).format(r=phrase.text, what=what, which=which)

    def _asking(self, tail: int) -> tuple[str, str]:
        """Words that ask for a tail of its kind: at the beginning of a question, and at its end."""
        id = self.graph.id(tail)
        if is_date(id):
            return "When", "when"
        if is_literal(id):
            return ("How much", "how much") if is_quantity(id) else ("What", "what")
        relation = self.graph.find_relation(INSTANCE_OF)
        kinds = [] if relation is None else [self.graph.id(kind) for kind in self.graph.tails(tail, relation).tolist()]
        return ("Who", "who") if HUMAN in kinds else ("What", "what")
