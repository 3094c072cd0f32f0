"""Files: read as lines and blocks, written atomically, checked by a manifest of sizes and checksums.

streams     lines and blocks of plain or compressed files; errors of reading and writing
atomic      files and directories that appear complete or not at all; locks; leftovers of killed processes
records     JSON as typed records
checksums   hashes of the blocks of a file
manifest    the files of an artefact and their checksums
artefact    directories with a manifest
"""

from kglm.files.atomic import (
    atomic_directory,
    atomic_file,
    exclusive,
    locked_directory,
    remove_directory,
    remove_leftovers,
    sync_directory,
)
from kglm.files.records import read_json, read_record, write_json
from kglm.files.streams import Block, digest_of, exists, read_blocks, read_lines, reading, writing

__all__ = [
    "Block",
    "atomic_directory",
    "atomic_file",
    "digest_of",
    "exclusive",
    "exists",
    "locked_directory",
    "read_blocks",
    "read_json",
    "read_lines",
    "read_record",
    "reading",
    "remove_directory",
    "remove_leftovers",
    "sync_directory",
    "write_json",
    "writing",
]
