"""Games and machine code on disk, so that a game that was loaded once starts at once.

An entry is a file named by a hash of everything that its content depends on: the rules or the code, the source of this
package's rules room, clingo, LLVM, the CPU and its features. It holds machine code, or tapes, which may write anywhere
just as well, so the folder is private, and one that others may write to is not read. An entry is written beside its
place and renamed, so two processes may write the same one. What is damaged, or another game's, counts as absent, an
unwritable folder as no cache. Nothing is ever removed.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import zipfile
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .circuit import Circuit, Loop
from .gdl import Rulesheet
from .names import GroundTerm
from .planes import GROUPS
from .tape import Tapes

FOLDER_VARIABLE = "GAMELORE_CACHE"


def folder() -> Path:
    """`compiled` in `$GAMELORE_CACHE`, else in the user's cache folder of this system.

    It is made to be the user's alone; the folder around it need not be.
    """
    import platformdirs

    chosen = os.environ.get(FOLDER_VARIABLE)
    return (Path(chosen) if chosen else platformdirs.user_cache_path("gamelore")) / "compiled"


def key(sheet: Rulesheet, literals: int, rewrite: bool = True) -> str:
    """What a compiled game depends on, hashed; with the limit of ground literals, so that it holds on each load."""
    return hashlib.sha256(f"{_machine()}\0{literals}\0{rewrite}\0{sheet}".encode()).hexdigest()


@cache
def _machine() -> str:
    import llvmlite.binding as llvm

    source = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        source.update(path.read_bytes())
    versions = [*(found.version for found in distributions(name="clingo")), str(llvm.llvm_version_info)]
    processor = [llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()]
    return "\0".join([source.hexdigest(), *versions, *processor])


def load(key: str) -> tuple[list[GroundTerm], Circuit, Tapes] | None:
    """Roles, circuit and tapes of a game; None where there is no such entry, or others may write there."""
    place = folder()
    try:
        if not _is_private(place):
            return None
        with zipfile.ZipFile(place / f"{key}.game") as archive:
            data = json.loads(archive.read("game.json"))
            if data["key"] != key:
                return None
            tapes = {name: np.frombuffer(archive.read(f"{name}.tape"), np.uint32) for name in GROUPS}
            left, right = (array("i", archive.read(name)) for name in ("left", "right"))
            return _terms(data["roles"]), _circuit(data, left, right), Tapes(tapes, data["num_planes"])
    except Exception:  # a damaged archive raises nearly anything; the entry is then made again
        return None


def _is_private(place: Path) -> bool:
    """Whether only this user can write to a folder, and so put machine code there."""
    status = place.stat()
    return not hasattr(os, "getuid") or (status.st_uid == os.getuid() and not status.st_mode & 0o022)


def store(key: str, roles: list[GroundTerm], circuit: Circuit, tapes: Tapes) -> None:
    """Writes an entry, if the folder can be written."""
    data = {
        "key": key,
        "roles": roles,
        "facts": circuit.facts,
        "unique": circuit.unique,
        "actions": circuit.actions,
        "goals": circuit.goals,
        "initial": circuit.initial,
        "loops": [[loop.variables, loop.results] for loop in circuit.loops],
        "outputs": circuit.outputs,
        "num_planes": tapes.num_planes,
    }
    with suppress(OSError), _new_file(f"{key}.game") as file, zipfile.ZipFile(file, "w") as archive:
        archive.writestr("game.json", json.dumps(data, separators=(",", ":")))
        archive.writestr("left", circuit.left.tobytes())
        archive.writestr("right", circuit.right.tobytes())
        for name, words in tapes.words.items():
            archive.writestr(f"{name}.tape", words.tobytes())


def refusal(key: str, seconds: float) -> str | None:
    """Why a game has no entry: what `refuse` was told."""
    with suppress(OSError, UnicodeDecodeError):
        return (folder() / f"{key}.{seconds:g}.refused").read_text(encoding="utf-8")
    return None


def refuse(key: str, seconds: float, why: str) -> None:
    """Writes down why a game cannot have an entry, so that nobody tries again with as many seconds."""
    with suppress(OSError), _new_file(f"{key}.{seconds:g}.refused") as file:
        file.write_text(why, encoding="utf-8")


def fingerprint(circuit: Circuit) -> str:
    """What the machine code of a circuit depends on, hashed."""
    loops = [(loop.variables, loop.results) for loop in circuit.loops]
    digest = hashlib.sha256(repr((circuit.num_facts, circuit.num_actions, loops, circuit.outputs)).encode())
    digest.update(circuit.left)
    digest.update(circuit.right)
    return digest.hexdigest()


def object_file(text: str, make: Callable[[str], bytes]) -> bytes:
    """The object file that `make` gives for this IR on this machine; made where it is not on disk."""
    name = hashlib.sha256(f"{_machine()}\0{text}".encode()).hexdigest() + ".kernel"
    with suppress(Exception):  # see load
        if _is_private(folder()):
            with zipfile.ZipFile(folder() / name) as archive:
                return archive.read("code.o")
    data = make(text)
    with suppress(OSError), _new_file(name) as file, zipfile.ZipFile(file, "w") as archive:
        archive.writestr("code.o", data)
    return data


def key_of(*what: object) -> str:
    """A key for what is worked out from these, which their `repr` tells apart, by this package on this machine."""
    return hashlib.sha256(f"{_machine()}\0{what!r}".encode()).hexdigest()


def load_arrays(key: str) -> dict[str, NDArray[Any]] | None:
    """What `store_arrays` was given; None where there is no such entry, or others may write there."""
    with suppress(Exception):  # see load
        if _is_private(folder()):
            with np.load(folder() / f"{key}.npz", allow_pickle=False) as archive:
                return dict(archive)
    return None


def store_arrays(key: str, arrays: dict[str, NDArray[Any]]) -> None:
    """Writes arrays by their names, if the folder can be written."""
    with suppress(OSError), _new_file(f"{key}.npz") as place, open(place, "wb") as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)


@contextmanager
def _new_file(name: str) -> Iterator[Path]:
    """A path to write to; the file takes its place at once when it is complete."""
    place = folder()
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place) as beside:
        file = Path(beside) / "new"
        yield file
        file.replace(place / name)


def _circuit(data: dict[str, Any], left: array[int], right: array[int]) -> Circuit:
    return Circuit(
        facts=_terms(data["facts"]),
        actions=[_terms(moves) for moves in data["actions"]],
        goals=data["goals"],
        initial=data["initial"],
        left=left,
        right=right,
        loops=[Loop(tuple(variables), tuple(results)) for variables, results in data["loops"]],
        outputs=data["outputs"],
        unique=[_terms(facts) for facts in data["unique"]],
    )


def _terms(values: list[Any]) -> list[GroundTerm]:
    return [_term(value) for value in values]


def _term(value: Any) -> GroundTerm:
    number, arguments = value
    return number, tuple(map(_term, arguments))
