"""Print the results of a benchmark as an aligned table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, title: str = "") -> None:
    """Print rows under column names: the first column to the left, numbers to the right."""
    lines = [list(columns), *([_cell(value) for value in row] for row in rows)]
    widths = [max(len(line[place]) for line in lines) for place in range(len(columns))]
    print(f"\n{title}" if title else "")
    for first, *others in lines:
        cells = [first.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True))]
        print("  ".join(cells).rstrip(), flush=True)


def _cell(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:,.{3 if abs(value) < 1 else 2 if abs(value) < 100 else 1}f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
