"""The `kglm` command: one verb a public function."""

from kglm.cli.main import main

__all__ = ["main"]
