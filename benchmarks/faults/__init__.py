"""Attacks on files, processes and input, with counts of what came of them: see docs/reliability.md."""
