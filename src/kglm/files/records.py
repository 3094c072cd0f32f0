"""JSON files as typed records: every field has a type and a range, and what does not fit is a clear error.

class Meta(msgspec.Struct, forbid_unknown_fields=True):
    nodes: Count

meta = read_record(path, Meta)
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec

from kglm.errors import ConfigError, DataError, misfit
from kglm.files.atomic import atomic_file
from kglm.files.streams import reading
from kglm.packed import AnyPath

T = TypeVar("T")
MAX_COUNT = 1 << 48
Count = Annotated[int, msgspec.Meta(ge=0, le=MAX_COUNT)]
"""A number of things, or an index."""
HexHash = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{16}$")]
"""A 64-bit hash in hexadecimal."""
_FILE_NAME = r"^[\w-][\w.-]{0,99}$"
FileName = Annotated[str, msgspec.Meta(pattern=_FILE_NAME)]
"""A name without directories."""
AnyFilePath = Annotated[str, msgspec.Meta(pattern=r"^[^\x00]+$")]
"""A path as the operating system accepts it: not empty, no null byte."""


def is_file_name(name: str) -> bool:
    """True for the names that a `FileName` may have."""
    return re.match(_FILE_NAME, name) is not None


def to_json(value: object) -> bytes:
    """JSON with one field a line. NaN and infinity, which JSON lacks, are an error."""
    plain = msgspec.to_builtins(value, str_keys=True)
    return json.dumps(plain, ensure_ascii=False, indent=2, allow_nan=False).encode() + b"\n"


def write_json(path: AnyPath, value: object) -> None:
    """Write a value as JSON, atomically."""
    with atomic_file(path) as stream:
        stream.write(to_json(value))


def read_record(path: AnyPath, kind: type[T], remedy: str | None = None) -> T:
    """Read a JSON file of the given type; an error names the file, the field and the finding."""
    with reading(path):
        content = Path(path).read_bytes()
    return decode_record(content, kind, path, remedy)


def decode_record(content: bytes, kind: type[T], place: object, remedy: str | None = None) -> T:
    """Decode JSON of the given type."""
    try:
        return msgspec.json.decode(content, type=kind, strict=True)
    except msgspec.ValidationError as error:
        raise DataError(misfit(error), place=place, remedy=remedy) from error
    except ConfigError as error:  # of a settings dataclass inside the record
        raise DataError(error.what, place=place, remedy=remedy or error.remedy) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(f"is not JSON ({error})", place=place, remedy=remedy) from error


def read_json(path: AnyPath) -> Any:
    """Read a JSON file of any content."""
    return read_record(path, Any)
