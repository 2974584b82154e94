"""Files that are written in one step: until then, the final name has the old file, or none; and when they changed."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file in one step, text as UTF-8, see `whole_file`."""
    with whole_file(path) as file:
        file.write_bytes(content.encode() if isinstance(content, str) else content)


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield the path of a new file beside `path`, which replaces `path` at the end. After an error, it is removed.

    The folder is created. A symbolic link stays a link, and a file that is replaced leaves its mode to the new one. A
    device or a pipe, such as /dev/stdout, is written directly. An OSError names `path`.
    """
    target = path.resolve()
    new = target.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        if path.exists() and not path.is_file():
            yield path
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        yield new
        if target.exists():
            shutil.copymode(target, new)
        os.replace(new, target)
    except OSError as error:
        if error.errno is None or error.filename not in (None, str(new)):  # such as a folder that cannot be made
            raise
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error
    finally:
        with suppress(OSError):  # the folder may be gone, too
            new.unlink(missing_ok=True)


def time_of_change(path: Path) -> float:
    """Return the time of the last change of a file, in seconds since 1970; 0 if it was removed meanwhile."""
    with suppress(OSError):
        return path.stat().st_mtime
    return 0.0
