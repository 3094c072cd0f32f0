"""Charts: well-formed SVG, to scale, labels escaped."""

from __future__ import annotations

import math
from xml.etree import ElementTree

import pytest

from kglm.plots import Axis, Series, bar_chart, line_chart

SVG = "{http://www.w3.org/2000/svg}"


def test_bars_are_to_scale() -> None:
    chart = bar_chart("t", "PPL", ["one", "two"], [Series("a", [], [10, 20]), Series("b", [], [5, math.nan])])
    bars = [float(bar.attrib["height"]) for bar in ElementTree.fromstring(chart).iter(f"{SVG}rect")][1:]
    bars = [height for height in bars if height != 11]  # without the legend
    assert bars[0] / bars[1] == pytest.approx(2, rel=0.01)
    assert bars[0] / bars[2] == pytest.approx(0.5, rel=0.01)
    assert len(bars) == 3  # no bar for NaN


def test_points_are_to_scale_and_in_the_picture() -> None:
    chart = line_chart("t", "samples", "nats", [Series("a", [1, 10, 100], [3, 2, 1], [2.5] * 3, [3.5] * 3)], log_x=True)
    points = [
        (float(c.attrib["cx"]), float(c.attrib["cy"])) for c in ElementTree.fromstring(chart).iter(f"{SVG}circle")
    ]
    (x0, y0), (x1, y1), (x2, y2) = points
    assert x1 - x0 == pytest.approx(x2 - x1, abs=0.2)
    assert y1 - y0 == pytest.approx(y2 - y1, abs=0.2)
    assert y0 < y2  # higher values are higher up
    assert all(0 < x < 640 and 0 < y < 400 for x, y in points)


@pytest.mark.parametrize("hostile", ["<script>alert(1)</script>", "a & b", '"quoted"', "<![CDATA["])
def test_labels_are_escaped(hostile: str) -> None:
    series = [Series(hostile, [1], [1])]
    for chart in (line_chart(hostile, hostile, hostile, series), bar_chart(hostile, hostile, [hostile], series)):
        root = ElementTree.fromstring(chart)
        assert hostile in [text.text for text in root.iter(f"{SVG}text")]
        assert not list(root.iter(f"{SVG}script"))


@pytest.mark.parametrize("series", [[], [Series("a", [], [])], [Series("a", [1], [math.nan])]])
def test_no_data_gives_an_empty_chart(series: list[Series]) -> None:
    for chart in (line_chart("t", "x", "y", series), bar_chart("t", "y", [], series)):
        assert ElementTree.fromstring(chart).tag == f"{SVG}svg"


@pytest.mark.parametrize(
    ("lowest", "highest", "log"), [(0, 1, False), (4.95, 5.02, False), (1, 300, True), (3, 3, False)]
)
def test_ticks_are_few_and_inside(lowest: float, highest: float, log: bool) -> None:
    ticks = Axis("x", lowest, highest, 0, 100, log).ticks()
    assert 1 <= len(ticks) <= 14
    assert all(lowest - 1e-6 <= tick <= highest + 1e-6 for tick in ticks)
