"""Cache of compiled games on disk, and hashes of the source code on which stored results depend.

An entry is a file. Its name is a hash of everything that its content depends on: the rules or the code, the source of
the modules that compile, the versions of clingo and LLVM, the CPU and its features. Entries contain machine code or
tapes. Both can write to any memory of the process. So the folder is private, and it is neither read nor written if
other users may write to it. A new entry is written to a temporary file, which is then renamed, so several processes may
write the same entry. A damaged entry, or an entry of another game, counts as absent. If the folder is not writable,
nothing is cached. Entries are never removed.
"""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import GameloreError, GroundingError
from ..files import whole_file
from ..gdl.limits import Limits
from ..gdl.syntax import Rulesheet
from ..ground.clingo import GroundTerm
from .aig import Circuit, Loop
from .tape import GROUPS, Tapes

ROOT = Path(__file__).parents[1]


@cache
def source_hash(*names: str) -> str:
    """Hash the Python files of packages and modules of gamelore, such as "ground" or "lab.papers.lock2004.plan".

    The name "" stands for all of them. The hash depends on the paths and contents of the files. Raise GameloreError if
    a name has no source files.
    """
    digest = hashlib.sha256()
    for path in sorted({path for name in names for path in source_files(name)}):
        source = path.read_bytes()
        digest.update(f"{path.relative_to(ROOT).as_posix()}\0{len(source)}\0".encode())
        digest.update(source)
    return digest.hexdigest()


def source_files(name: str) -> list[Path]:
    """Return the Python files of a module, or of a package with its sub-packages.

    Raise GameloreError if there are none, or if all of them are empty.
    """
    path = ROOT.joinpath(*name.split("."))
    files = [file for file in (path.with_name(f"{path.name}.py"), *path.rglob("*.py")) if file.is_file()]
    if not any(file.read_bytes().strip() for file in files):
        raise GameloreError(f"expected the Python files of gamelore.{name} in {ROOT}, got none; install gamelore again")
    return files


FOLDER_VARIABLE = "GAMELORE_CACHE"
COMPILING = (
    *("gdl.clauses", "gdl.limits", "gdl.syntax", "ground", "game.compile"),
    *("circuit.aig", "circuit.cache", "circuit.native", "circuit.tape", "circuit.translate"),
)
"""The packages and modules that compile games. The content of the cache depends on their source.

The other modules of `circuit` write the kernels that all games share. The key of a kernel has its text.
"""


def folder() -> Path:
    """Return the folder of the cache: `compiled` in `$GAMELORE_CACHE`, or else in the user's cache folder.

    Only the user can read the folder `compiled`; the folder that contains it may be shared.
    """
    import platformdirs

    return Path(os.environ.get(FOLDER_VARIABLE) or platformdirs.user_cache_path("gamelore")) / "compiled"


def key(sheet: Rulesheet, literals: int, rewrite: bool = True) -> str:
    """Return the key of a compiled game. literals: the limit of ground literals.

    The key includes the limit, so a game that was compiled with a higher limit is not loaded.
    """
    return hashlib.sha256(f"{_machine()}\0{literals}\0{rewrite}\0{sheet}".encode()).hexdigest()


@cache
def _machine() -> str:
    """Return a text with the hash of the compiling modules, the versions of clingo and LLVM, and the processor."""
    import llvmlite.binding as llvm

    versions = [*(package.version for package in distributions(name="clingo")), str(llvm.llvm_version_info)]
    processor = [llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()]
    return "\0".join([source_hash(*COMPILING), *versions, *processor])


def load(key: str) -> tuple[list[GroundTerm], Circuit, Tapes] | None:
    """Return the roles, the circuit and the tapes of a game; None if there is no valid entry."""
    # a damaged file can raise almost any error
    with suppress(Exception), zipfile.ZipFile(_private(f"{key}.game")) as archive:
        data = json.loads(archive.read("game.json"))
        if data["key"] == key:
            tapes = {name: np.frombuffer(archive.read(f"{name}.tape"), np.uint32) for name in GROUPS}
            left, right = (array("i", archive.read(name)) for name in ("left", "right"))
            return _terms(data["roles"]), _circuit(data, left, right), Tapes(tapes, data["num_planes"])
    return None


def _private(name: str) -> Path:
    """Return the path of an entry. Raise PermissionError if other users may write to the folder."""
    path = folder()
    status = path.stat()
    if hasattr(os, "getuid") and (status.st_uid != os.getuid() or status.st_mode & 0o022):
        raise PermissionError(f"expected a folder to which only its owner may write, got {path}")
    return path / name


def store(key: str, roles: list[GroundTerm], circuit: Circuit, tapes: Tapes) -> None:
    """Write the entry of a game, if the folder is writable."""
    data = {
        "key": key,
        "roles": roles,
        **{name: getattr(circuit, name) for name in ("facts", "actions", "goals", "initial", "outputs", "unique")},
        "loops": [(loop.variables, loop.results) for loop in circuit.loops],
        "num_planes": tapes.num_planes,
    }
    with suppress(OSError), _new_file(f"{key}.game") as file, zipfile.ZipFile(file, "w") as archive:
        archive.writestr("game.json", json.dumps(data, separators=(",", ":")))
        archive.writestr("left", circuit.left.tobytes())
        archive.writestr("right", circuit.right.tobytes())
        for name, words in tapes.words.items():
            archive.writestr(f"{name}.tape", words.tobytes())


def refusal(key: str, limits: Limits) -> GroundingError | None:
    """Return the reason why a game could not be compiled, as stored by `store_refusal`; None if there is none."""
    with suppress(OSError, ValueError, TypeError):
        return GroundingError(*json.loads(_private(_refused(key, limits)).read_text(encoding="utf-8")))
    return None


def store_refusal(key: str, limits: Limits, reason: GroundingError) -> None:
    """Store the reason why a game could not be compiled, so that later calls with the same limits do not retry."""
    with suppress(OSError), _new_file(_refused(key, limits)) as file:
        file.write_text(json.dumps([reason.message, reason.remedy]), encoding="utf-8")


def _refused(key: str, limits: Limits) -> str:
    return f"{key}.{limits.seconds:g}.{limits.memory}.refused"


def fingerprint(circuit: Circuit) -> str:
    """Return a hash of everything that the machine code of a circuit depends on."""
    loops = [(loop.variables, loop.results) for loop in circuit.loops]
    digest = hashlib.sha256(repr((circuit.num_facts, circuit.num_actions, loops, circuit.outputs)).encode())
    digest.update(circuit.left)
    digest.update(circuit.right)
    return digest.hexdigest()


def object_file(text: str, make: Callable[[str], bytes]) -> bytes:
    """Return the object file for the text of LLVM IR, from the cache or else from `make`."""
    name = hashlib.sha256(f"{_machine()}\0{text}".encode()).hexdigest() + ".kernel"
    with suppress(Exception), zipfile.ZipFile(_private(name)) as archive:
        return archive.read("code.o")
    data = make(text)
    with suppress(OSError), _new_file(name) as file, zipfile.ZipFile(file, "w") as archive:
        archive.writestr("code.o", data)
    return data


def key_of(made_by: Sequence[str], *what: object) -> str:
    """Return the key of a result that is computed from a compiled game.

    made_by: the modules that compute it, in addition to COMPILING.
    what: its inputs. The key depends on the `repr` of each input.
    """
    return hashlib.sha256(f"{_machine()}\0{source_hash(*made_by)}\0{what!r}".encode()).hexdigest()


def load_arrays(key: str) -> dict[str, NDArray[Any]] | None:
    """Return the arrays of an entry that `store_arrays` wrote; None if there is no valid entry."""
    with suppress(Exception), np.load(_private(f"{key}.npz"), allow_pickle=False) as archive:
        return dict(archive)
    return None


def store_arrays(key: str, arrays: dict[str, NDArray[Any]]) -> None:
    """Write an entry with named arrays, if the folder is writable."""
    with suppress(OSError), _new_file(f"{key}.npz") as path, open(path, "wb") as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)


@contextmanager
def _new_file(name: str) -> Iterator[Path]:
    """Yield the path of a temporary file, which gets its name in the folder of the cache at the end.

    Raise PermissionError if other users may write to the folder.
    """
    folder().mkdir(mode=0o700, parents=True, exist_ok=True)
    with whole_file(_private(name)) as file:
        yield file


def _circuit(data: dict[str, Any], left: array[int], right: array[int]) -> Circuit:
    return Circuit(
        facts=_terms(data["facts"]),
        actions=list(map(_terms, data["actions"])),
        goals=data["goals"],
        initial=data["initial"],
        left=left,
        right=right,
        loops=[Loop(*map(tuple, loop)) for loop in data["loops"]],
        outputs=data["outputs"],
        unique=list(map(_terms, data["unique"])),
    )


def _terms(values: list[Any]) -> list[GroundTerm]:
    return list(map(_term, values))


def _term(value: Any) -> GroundTerm:
    number, arguments = value
    return number, tuple(map(_term, arguments))
