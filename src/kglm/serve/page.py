"""The files of the web page, loaded into memory: a request never reaches the file system."""

from __future__ import annotations

from importlib import resources
from typing import NamedTuple

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
}
PLACEHOLDER = b"<!doctype html><html lang=en><meta charset=utf-8><title>kglm</title><p>See /openapi.json for the API."


class File(NamedTuple):
    """A file and its media type."""

    content: bytes
    type: str


def load() -> dict[str, File]:
    """Load the files of the folder `page` beside this module, by name."""
    files = {"index.html": File(PLACEHOLDER, TYPES[".html"])}
    folder = resources.files("kglm.serve").joinpath("page")
    for file in folder.iterdir() if folder.is_dir() else ():
        suffix = "." + file.name.rpartition(".")[2]
        if file.is_file() and suffix in TYPES:
            files[file.name] = File(file.read_bytes(), TYPES[suffix])
    return files
