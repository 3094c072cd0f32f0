"""Flip single bits in every region of every file of a run and its graph, and count what is noticed.

python -m benchmarks.faults.flips --flips 2000 --to flips.json
python -m benchmarks.faults.flips --flips 2000 --as-large

`--as-large` treats the small files as large ones: opening checks only their first block, and what is checked later must
find the rest.

Each flip is tried in a process of its own: answers are asked for, then `kglm doctor` is asked. A flip is

refused     opening ends in an error that names the file
rebuilt     a cache was derived again, and the answers are right
harmless    the answers are right
silent      the answers are wrong and nothing is said: must not happen
traceback   an error of the program: must not happen
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import random
import signal
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.faults.world import answers, make_world

from kglm.doctor import examine
from kglm.errors import KglmError
from kglm.files import artefact
from kglm.files.checksums import Checksums
from kglm.kg import integrity
from kglm.progress import progress

REGIONS = 16
"""Equal parts of a file, each of which is flipped; its first and last bytes are flipped too."""
PAGE = 4096
SECONDS = 60


def places(size: int, random: random.Random, *, pages: bool) -> Iterator[int]:
    """Offsets to flip: in the header, in the last bytes, in each region, and in each page of an SQLite file."""
    if not size:
        return
    yield random.randrange(min(size, 64))
    yield size - 1 - random.randrange(min(size, 64))
    step = PAGE if pages else max(1, -(-size // REGIONS))
    for start in range(0, size, step):
        yield start + random.randrange(min(step, size - start))


def attack(home: Path, flips: int, seed: int = 0, *, shown: bool = True, sampled: bool = False) -> dict[str, object]:
    """Flip at least `flips` bits in files below `home`, each file in all its regions; if `sampled`, `flips` of them."""
    kg, run = make_world(home)
    reference = answers(run)
    generator = random.Random(seed)
    files = sorted(path for path in home.rglob("*") if (path.is_file() and path.parent != home) or path.name == kg.name)
    files += [path for path in home.glob("world.kg.*") if path.is_file()]
    targets: list[tuple[Path, int]] = []
    while len(targets) < flips:
        for path in files:
            pages = path == kg
            targets += [(path, place) for place in places(path.stat().st_size, generator, pages=pages)]
    if sampled:
        targets = generator.sample(targets, flips)
    outcomes: dict[str, Counter[str]] = {}
    examples: list[str] = []
    with progress("flipping bits", len(targets), "flips", shown=shown) as advance:
        for path, place in targets:
            outcome, healthy, what = _try(home, run, path, place, generator.randrange(8), reference)
            kind = _kind(home, path)
            outcomes.setdefault(kind, Counter())[outcome] += 1
            outcomes[kind]["found by doctor"] += not healthy
            if outcome in ("silent", "traceback"):
                examples.append(f"{path.relative_to(home)} byte {place}: {outcome} {what}")
            advance()
    total = Counter[str]()
    for counts in outcomes.values():
        total.update(counts)
    return {
        "flips": len(targets),
        "files": len(files),
        "total": dict(total),
        "by file": {kind: dict(counts) for kind, counts in sorted(outcomes.items())},
        "examples": examples[:50],
    }


def _kind(home: Path, path: Path) -> str:
    """Name of a file without the parts that differ from run to run."""
    parts = path.relative_to(home).parts
    return "/".join(part if not part[:1].isdigit() and "-" not in part else "*" for part in parts)


def _try(home: Path, run: Path, path: Path, place: int, bit: int, reference: str) -> tuple[str, bool, str]:
    """Flip a bit and look at the answers; flip it again and ask doctor; restore all files."""
    before = {file: file.read_bytes() for file in home.rglob("*") if file.is_file()}
    content = bytearray(before[path])
    content[place] ^= 1 << bit
    path.write_bytes(content)
    outcome, what = _in_process(lambda: _look(run, reference))
    _restore(home, before)
    path.write_bytes(content)
    healthy, why = _in_process(lambda: _ask_doctor(run))
    _restore(home, before)
    return (outcome, healthy == "healthy", what) if healthy != "traceback" else (healthy, True, why)


def _in_process(function: Callable[[], tuple[str, str]]) -> tuple[str, str]:
    """Result of a function in a process of its own: a crash or a hang is a result, too."""
    reader, writer = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(reader)
        signal.alarm(SECONDS)
        with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
            os.write(writer, json.dumps(function()).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        found = stream.read()
    os.waitpid(process, 0)
    outcome, what = json.loads(found) if found else ("traceback", "the process died or did not end")
    return outcome, what


def _look(run: Path, reference: str) -> tuple[str, str]:
    """What comes of asking for answers."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            same = answers(run) == reference
    except KglmError as error:
        return "refused", str(error)
    except Exception:
        return "traceback", traceback.format_exc()[-800:]
    if not same:
        return "silent", said.getvalue()
    return "rebuilt" if "rebuilt" in said.getvalue() else "harmless", said.getvalue()


def _ask_doctor(run: Path) -> tuple[str, str]:
    try:
        errors = [finding.what for finding in examine(run) if finding.level == "error"]
    except KglmError as error:
        errors = [str(error)]
    except Exception:
        return "traceback", traceback.format_exc()[-800:]
    return ("damaged", errors[0]) if errors else ("healthy", "")


def _restore(home: Path, before: dict[Path, bytes]) -> None:
    for file in [file for file in home.rglob("*") if file.is_file()]:
        if file not in before:
            file.unlink()
    for file, content in before.items():
        if not file.exists() or file.read_bytes() != content:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--flips", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--as-large", action="store_true", help="check files on opening as if they were large")
    parser.add_argument("--to", type=Path)
    options = parser.parse_args()
    if options.as_large:
        artefact.WHOLE = integrity.WHOLE = 0
        Checksums.sample = lambda _: [0]  # type: ignore[method-assign]
    with tempfile.TemporaryDirectory() as home:
        result = attack(Path(home), options.flips, options.seed)
    text = json.dumps(result, indent=2)
    print(text)
    if options.to:
        options.to.write_text(text + "\n")
    total = result["total"]
    assert isinstance(total, dict)
    sys.exit(1 if total.get("silent") or total.get("traceback") else 0)


if __name__ == "__main__":
    main()
