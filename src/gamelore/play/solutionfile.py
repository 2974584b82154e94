"""Arrays in one file, memory-mapped when it is read.

    8 bytes    "gamelore"
    8 bytes    the length of the header, little-endian
    header     JSON: "key", what the content was made from; "facts", anything small; "checksum", CRC-32 of what follows;
               "arrays", name -> [dtype, shape, where it begins, counted from the end of the header]
    arrays     each at a multiple of 64 bytes

A file is written beside its place and renamed, so there is a whole one or none. One that is damaged, or made from
something else, counts as absent.
"""

from __future__ import annotations

import json
import mmap
import tempfile
import zlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_MAGIC = b"gamelore"
_ALIGNMENT = 64
_PIECE = 1 << 24  # bytes of a file that are checked at once


def write(path: Path, key: str, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Writes a file, if its folder can be written; makes the folder."""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as beside:
            file = Path(beside) / "new"
            _write(file, key, facts, arrays)
            file.replace(path)


def read(path: Path, key: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]] | None:
    """(facts, arrays), the arrays private copies of the file's pages; None where there is no such whole file."""
    try:
        with path.open("rb") as file:
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        begin = 16 + int.from_bytes(content[8:16], "little")
        header = json.loads(content[16:begin])
        if content[:8] != _MAGIC or header["key"] != key or header["checksum"] != _checksum(content, begin):
            return None
        return header["facts"], {
            name: np.frombuffer(content, dtype, int(np.prod(shape)), begin + place).reshape(shape)
            for name, (dtype, shape, place) in header["arrays"].items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _write(file: Path, key: str, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    places, place, checksum = {}, 0, 0
    for name, array in arrays.items():
        places[name] = [array.dtype.str, array.shape, place]
        padding = _padding(array.nbytes)
        checksum = zlib.crc32(padding, zlib.crc32(_bytes(array), checksum))
        place += array.nbytes + len(padding)
    header = json.dumps({"key": key, "facts": facts, "checksum": checksum, "arrays": places}).encode()
    header += b" " * len(_padding(16 + len(header)))
    with file.open("wb") as out:
        out.write(_MAGIC + len(header).to_bytes(8, "little") + header)
        for array in arrays.values():
            out.write(_bytes(array))
            out.write(_padding(array.nbytes))


def _bytes(array: NDArray[Any]) -> memoryview:
    """What is in an array, without a copy where it lies in one piece."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def _padding(size: int) -> bytes:
    return bytes(-size % _ALIGNMENT)


def _checksum(content: mmap.mmap, begin: int) -> int:
    checksum = 0
    with memoryview(content) as view:
        for place in range(begin, len(content), _PIECE):
            checksum = zlib.crc32(view[place : place + _PIECE], checksum)
    return checksum
