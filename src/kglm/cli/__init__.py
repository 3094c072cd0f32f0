"""The `kglm` command: one function for each verb."""

from kglm.cli.main import main

__all__ = ["main"]
