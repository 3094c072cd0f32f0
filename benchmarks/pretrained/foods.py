"""The table of foods: 100 foods with 12 measured properties each, made up at random with a fixed seed.

Foods are real words, so the base has numbers of its own for some of them; those of the table are others.
"""

from __future__ import annotations

import csv
import random
from pathlib import Path

SEED = 22
FOODS = Path(__file__).with_name("worlds") / "foods.txt"
"""Names of the foods, one a line."""
PROPERTIES: dict[str, tuple[str, float, float, int]] = {
    "energy": ("kilocalories", 11, 899, 0),
    "protein": ("grams", 0.2, 38, 1),
    "fat": ("grams", 0.1, 72, 2),
    "carbohydrates": ("grams", 0.4, 88, 1),
    "sugar": ("grams", 0.1, 57, 2),
    "fibre": ("grams", 0.1, 14, 2),
    "sodium": ("milligrams", 1, 2140, 0),
    "calcium": ("milligrams", 3, 1270, 0),
    "iron": ("milligrams", 0.1, 19, 2),
    "vitamin C": ("milligrams", 0.3, 183, 1),
    "water": ("percent", 4, 96, 1),
    "boiling time": ("minutes", 2, 187, 0),
}
"""Unit, least and greatest value, digits after the point."""


def write_foods(path: Path) -> None:
    """Write the table as CSV, one food a row."""
    rng = random.Random(SEED)
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["food", *PROPERTIES])
        for food in FOODS.read_text(encoding="utf-8").splitlines():
            values = (f"{rng.uniform(low, high):.{digits}f} {unit}" for unit, low, high, digits in PROPERTIES.values())
            writer.writerow([food, *values])
