"""python tools/bundle_heads.py RUN

Make the heads of a run those that come with kglm: without the training's graph, checkpoint and model card.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from kglm.files.artefact import Artefact, new_artefact
from kglm.heads.run import FILES, REMEDY

HOME = Path(__file__).resolve().parent.parent / "src/kglm/bundled/heads"


def main(run: Path) -> None:
    artefact = Artefact.open(run, REMEDY, FILES)
    contents = {name: artefact.read(name) for name in FILES if name != "kg.json"}
    shutil.rmtree(HOME, ignore_errors=True)
    with new_artefact(HOME) as writer:
        for name, content in contents.items():
            writer.bytes(name, content)
    print(f"{HOME}: {sum(map(len, contents.values())):,} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
