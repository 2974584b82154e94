"""Tests of missing permissions as root, who may do everything: root without the right to override permissions."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

OVERRIDES = 0b110  # CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH
_VERSION = 0x20080522  # of the structs of capget and capset
_DROP = 24  # PR_CAPBSET_DROP


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Sets(ctypes.Structure):
    _fields_ = (("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32))


@contextmanager
def without_override() -> Iterator[None]:
    """Let permissions of files bind this thread, also if it is root's."""
    if sys.platform != "linux" or os.getuid():
        yield
        return
    libc = ctypes.CDLL(None, use_errno=True)
    header, sets = _Header(_VERSION, 0), (_Sets * 2)()
    assert libc.capget(ctypes.byref(header), sets) == 0, os.strerror(ctypes.get_errno())
    before = sets[0].effective
    try:
        sets[0].effective = before & ~OVERRIDES
        assert libc.capset(ctypes.byref(header), sets) == 0, os.strerror(ctypes.get_errno())
        yield
    finally:
        sets[0].effective = before
        libc.capset(ctypes.byref(header), sets)


def drop_override() -> None:
    """The same for ever, and for the programs that this process starts: for `preexec_fn`."""
    if sys.platform == "linux" and not os.getuid():
        libc = ctypes.CDLL(None)
        for capability in (1, 2):
            libc.prctl(_DROP, capability, 0, 0, 0)
