"""Compiled games on disk, so that a game that was loaded once starts at once.

An entry is a file named by a hash of everything that its content depends on: the rules, the source of this package's
rules room, LLVM, the CPU and its features. It holds machine code, so the folder is private, and one that others may
write to is not read; it is written beside its place and renamed, so two processes may write the same entry. An
unreadable entry counts as absent, an unwritable folder as no cache. Nothing is ever removed.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import zipfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from .circuit import Circuit, Loop
from .gdl import Rulesheet
from .ground import GroundTerm
from .native import ObjectCode

FOLDER_VARIABLE = "GAMELORE_CACHE"


def folder() -> Path:
    """`$GAMELORE_CACHE`, else the user's cache folder of this system."""
    import platformdirs

    chosen = os.environ.get(FOLDER_VARIABLE)
    return Path(chosen) if chosen else platformdirs.user_cache_path("gamelore") / "compiled"


def key(sheet: Rulesheet, literals: int) -> str:
    """What a compiled game depends on, hashed; with the limit of ground literals, so that it holds on each load."""
    return hashlib.sha256(f"{_machine()}\0{literals}\0{sheet}".encode()).hexdigest()


@cache
def _machine() -> str:
    import llvmlite.binding as llvm

    source = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        source.update(path.read_bytes())
    features = llvm.get_host_cpu_features().flatten()
    return "\0".join([source.hexdigest(), str(llvm.llvm_version_info), llvm.get_host_cpu_name(), features])


def load(key: str) -> tuple[list[GroundTerm], Circuit, ObjectCode] | None:
    """Roles, circuit and code of a compiled game; None where there is no such entry, or others may write there."""
    place = folder()
    try:
        if not _is_private(place):
            return None
        with zipfile.ZipFile(place / f"{key}.game") as archive:
            data = json.loads(archive.read("circuit.json"))
            return (
                _terms(data["roles"]),
                _circuit(data),
                ObjectCode(archive.read("code.o"), data["num_planes"]),
            )
    except Exception:  # a damaged archive raises nearly anything; the entry is then made again
        return None


def _is_private(place: Path) -> bool:
    """Whether only this user can write to a folder, and so put machine code there."""
    status = place.stat()
    return not hasattr(os, "getuid") or (status.st_uid == os.getuid() and not status.st_mode & 0o022)


def store(key: str, roles: list[GroundTerm], circuit: Circuit, code: ObjectCode) -> None:
    """Writes an entry, if the folder can be written."""
    data = {
        "roles": roles,
        "facts": circuit.facts,
        "actions": circuit.actions,
        "goals": circuit.goals,
        "initial": circuit.initial,
        "left": circuit.left,
        "right": circuit.right,
        "loops": [[loop.variables, loop.results] for loop in circuit.loops],
        "outputs": circuit.outputs,
        "num_planes": code.num_planes,
    }
    with suppress(OSError):
        place = folder()
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place) as beside:
            file = Path(beside) / "new.game"
            with zipfile.ZipFile(file, "w") as archive:
                archive.writestr("circuit.json", json.dumps(data, separators=(",", ":")))
                archive.writestr("code.o", code.data)
            file.replace(place / f"{key}.game")


def _circuit(data: dict[str, Any]) -> Circuit:
    return Circuit(
        facts=_terms(data["facts"]),
        actions=[_terms(moves) for moves in data["actions"]],
        goals=data["goals"],
        initial=data["initial"],
        left=data["left"],
        right=data["right"],
        loops=[Loop(tuple(variables), tuple(results)) for variables, results in data["loops"]],
        outputs=data["outputs"],
    )


def _terms(values: list[Any]) -> list[GroundTerm]:
    return [_term(value) for value in values]


def _term(value: Any) -> GroundTerm:
    number, arguments = value
    return number, tuple(map(_term, arguments))
