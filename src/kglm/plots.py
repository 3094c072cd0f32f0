"""Charts as SVG: lines with error bars, and grouped bars.

A chart is one string that any browser shows, without a library, a font or a script; every label is escaped. The colours
are those of Okabe and Ito, which most colour-blind people can tell apart.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
WIDTH, HEIGHT = 640, 400
LEFT, RIGHT, TOP, BOTTOM = 72, 24, 56, 56
TICKS = 6
STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#222}.title{font-size:15px;font-weight:600}.small{font-size:12px}"
    ".grid{stroke:#ddd}.axis{stroke:#444}.line{fill:none;stroke-width:2}"
)


@dataclass(frozen=True)
class Series:
    """The points of one line or one colour of bars; `low` and `high` are the ends of their error bars."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    joined: bool = True
    """True if a line connects the points."""


@dataclass(frozen=True)
class Axis:
    """Map values from [lowest, highest] to pixels from start to end, on a linear or logarithmic scale."""

    label: str
    lowest: float
    highest: float
    start: float
    end: float
    log: bool = False

    def at(self, value: float) -> float:
        low, high, value = (math.log(v) if self.log else v for v in (self.lowest, self.highest, value))
        return self.start + (self.end - self.start) * ((value - low) / (high - low) if high > low else 0.5)

    def ticks(self) -> list[float]:
        """Round values on the axis."""
        if self.log:
            first, last = math.floor(math.log10(self.lowest)), math.ceil(math.log10(self.highest))
            steps = (1, 3) if last - first < TICKS else (1,)
            marks = [m * 10.0**power for power in range(first, last + 1) for m in steps]
        else:
            rough = (self.highest - self.lowest) / TICKS or 1.0
            scale = 10.0 ** math.floor(math.log10(rough))
            step = next(m * scale for m in (1, 2, 5, 10) if m * scale >= rough * (1 - 1e-9))
            first = math.ceil(self.lowest / step - 1e-9)
            marks = [step * n for n in range(first, math.floor(self.highest / step + 1e-9) + 1)]
        slack = 1e-9 * (abs(self.highest) + abs(self.lowest))
        return [mark for mark in marks if self.lowest - slack <= mark <= self.highest + slack]


def line_chart(
    title: str, x_label: str, y_label: str, series: Sequence[Series], *, log_x: bool = False, log_y: bool = False
) -> str:
    """Draw one line per series, with error bars for the series that have them."""
    xs = [x for each in series for x in each.x]
    ys = [y for each in series for y in (*each.y, *each.low, *each.high) if math.isfinite(y)]
    if not xs or not ys:
        return _page(title, [])
    x = Axis(x_label, min(xs), max(xs), LEFT + 12, WIDTH - RIGHT - 12, log_x)
    y = Axis(y_label, *_with_margin(min(ys), max(ys), log=log_y), HEIGHT - BOTTOM, TOP, log_y)
    body = [*_grid(y), *_bottom(x), *_legend([each.name for each in series])]
    for number, each in enumerate(series):
        colour = _colour(number)
        points = [(x.at(a), y.at(b)) for a, b in zip(each.x, each.y, strict=True) if math.isfinite(b)]
        if each.joined:
            path = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
            body.append(f'<polyline class="line" stroke="{colour}" points="{path}"/>')
        for a, low, high in zip(each.x, each.low, each.high, strict=False):
            body.append(_error_bar(x.at(a), y.at(low), y.at(high), colour))
        body += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3.5" fill="{colour}"/>' for a, b in points]
    return _page(title, body)


def bar_chart(title: str, y_label: str, groups: Sequence[str], series: Sequence[Series]) -> str:
    """Draw groups of bars from zero; a series has one value per group, in the order of `groups`."""
    ys = [y for each in series for y in (*each.y, *each.high) if math.isfinite(y)]
    if not ys or not groups:
        return _page(title, [])
    y = Axis(y_label, 0.0, max(max(ys), 0.0) * 1.08 or 1.0, HEIGHT - BOTTOM, TOP)
    body = [*_grid(y), *_legend([each.name for each in series])]
    group_width = (WIDTH - LEFT - RIGHT) / len(groups)
    bar_width = 0.8 * group_width / len(series)
    for place, group in enumerate(groups):
        middle = LEFT + group_width * (place + 0.5)
        body.append(_text(middle, HEIGHT - BOTTOM + 20, group, anchor="middle", kind="small"))
        for number, each in enumerate(series):
            value = each.y[place]
            if not math.isfinite(value):
                continue
            left, top = middle - 0.4 * group_width + number * bar_width, y.at(value)
            body.append(
                f'<rect x="{left:.1f}" y="{top:.1f}" width="{0.92 * bar_width:.1f}" '
                f'height="{HEIGHT - BOTTOM - top:.1f}" fill="{_colour(number)}"/>'
            )
            above = top
            if each.low and each.high:
                body.append(_error_bar(left + 0.46 * bar_width, y.at(each.low[place]), y.at(each.high[place]), "#222"))
                above = min(top, y.at(each.high[place]))
            if bar_width > 24:
                body.append(_text(left + 0.46 * bar_width, above - 5, _number(value), anchor="middle", kind="small"))
    return _page(title, body)


def _with_margin(lowest: float, highest: float, *, log: bool) -> tuple[float, float]:
    if log:
        return lowest / 1.2, highest * 1.2
    space = 0.05 * (highest - lowest) or 0.05 * abs(highest) or 1.0
    return lowest - space, highest + space


def _colour(number: int) -> str:
    return COLOURS[number % len(COLOURS)]


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _text(x: float, y: float, text: str, *, anchor: str = "start", kind: str = "", turned: bool = False) -> str:
    turn = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turned else ""
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{turn}>{escape(text)}</text>'


def _grid(y: Axis) -> list[str]:
    """Horizontal grid lines with their values, and the label of the axis."""
    parts = []
    for tick in y.ticks():
        at = y.at(tick)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>')
        parts.append(_text(LEFT - 8, at + 4, _number(tick), anchor="end", kind="small"))
    parts.append(_text(20, (TOP + HEIGHT - BOTTOM) / 2, y.label, anchor="middle", turned=True))
    base = HEIGHT - BOTTOM
    return [*parts, f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{base}" y2="{base}"/>']


def _bottom(x: Axis) -> list[str]:
    parts = [
        _text(x.at(tick), HEIGHT - BOTTOM + 20, _number(tick), anchor="middle", kind="small") for tick in x.ticks()
    ]
    return [*parts, _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, x.label, anchor="middle")]


def _legend(names: Sequence[str]) -> list[str]:
    parts, at = [], float(LEFT)
    for number, name in enumerate(names):
        parts.append(f'<rect x="{at:.1f}" y="36" width="11" height="11" fill="{_colour(number)}"/>')
        parts.append(_text(at + 16, 46, name, kind="small"))
        at += 34 + 6.8 * len(name)
    return parts


def _error_bar(x: float, low: float, high: float, colour: str) -> str:
    ends = "".join(f"M{x - 4:.1f} {y:.1f}h8" for y in (low, high))
    return f'<path d="M{x:.1f} {low:.1f}V{high:.1f}{ends}" stroke="{colour}" stroke-width="1.2" fill="none"/>'


def _page(title: str, body: Sequence[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">'
    name = escape(title)
    shown = f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>{_text(LEFT, 24, title, kind="title")}'
    return "\n".join([f"{head}<title>{name}</title><style>{STYLE}</style>{shown}", *body, "</svg>\n"])
