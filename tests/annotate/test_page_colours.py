"""Contrast of the colours of pages, light and dark."""

from __future__ import annotations

import re

import pytest

from kglm.annotate.page import KINDS, STYLE

PALETTES = re.findall(r"\.linked \{\s*((?:\s*--.*?;)+)", STYLE)


def luminance(colour: str) -> float:
    channels = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: str, other: str) -> float:
    dark, light = sorted(map(luminance, (one, other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("palette", PALETTES, ids=["light", "dark"])
def test_contrast(palette: str) -> None:
    """WCAG 2.2, AA: 4.5 for text, 3 for outlines."""
    colour = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", palette))
    for kind in KINDS:
        assert contrast(colour["ink"], colour[kind]) >= 7
        assert contrast(colour[f"{kind}-ink"], colour[kind]) >= 4.5, "signs and labels in a box"
        assert contrast(colour[f"{kind}-ink"], colour["raised"]) >= 4.5, "relations on a card"
        assert contrast(colour[f"{kind}-ink"], colour["paper"]) >= 3, "underlines"
        assert contrast(colour[f"{kind}-ink"], colour["target"]) >= 4.5
        assert contrast(colour["parent"], colour[kind]) >= 3
    for ground in ("paper", "raised"):
        assert all(contrast(colour[ink], colour[ground]) >= 4.5 for ink in ("ink", "soft", "link", "parent"))


def test_there_are_two_palettes_with_the_same_names() -> None:
    light, dark = ([*re.findall(r"--(\w[\w-]*): #", palette)] for palette in PALETTES)
    assert light == dark and len(light) > 10
