"""What can follow a text, and what can follow that: readings that are computed once and kept."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from kglm.heads.following import Following
from kglm.heads.reading import Reading
from kglm.heads.tail_names import LEAST_READ


@dataclass(frozen=True, eq=False)
class Step:
    """A text, or a text and some plain subwords after it."""

    reading: Reading
    ids: tuple[int, ...] = ()
    """The plain subwords after the text."""
    p: float = 1.0
    """Their probability."""

    @cached_property
    def following(self) -> Following:
        """What can follow."""
        return Following.of(self.reading)

    @cached_property
    def _after(self) -> dict[int, Step]:
        return {}

    def after(self, id: int) -> Step:
        """The text with one more plain subword."""
        found = self._after.get(id)
        if found is None:
            p = self.p * float(self.following.outside_V[id])
            found = self._after[id] = Step(self.reading.step(id, {None: 1.0}), (*self.ids, id), p)
        return found

    def as_prompt(self) -> Step:
        """The same text as a prompt: the sentence encoder looks at its end. If it is probable, labels are read, too."""
        return Step(replace(self.reading, at_end=True, reads_labels=self.p >= LEAST_READ), self.ids, self.p)
