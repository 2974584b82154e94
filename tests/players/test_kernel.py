"""The decorators of compiled functions, and the private parts of numba on which they depend."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from threading import Barrier
from types import ModuleType
from typing import Any, NamedTuple
from unittest.mock import Mock

import numba
import numpy as np
import pytest
from numba.core.caching import CacheImpl, IndexDataCacheFile, NullCache
from numba.core.registry import CPUDispatcher
from numba.core.sigutils import normalize_signature

import gamelore
from gamelore.gdl.limits import resident_memory
from gamelore.players import kernel as decorators
from gamelore.players.kernel import (
    F64,
    I32,
    I64,
    acquire,
    fence,
    increment,
    inlined,
    kernel,
    kernel_without_gil,
    kernel_without_refcounts,
    lazy_zeros,
    load_kernels,
    new_lock,
    release,
)

MODULES = [
    "players.preferences",
    "players.position_graph",
    "players.lookahead",
    "matches.lockstep",
    "matches.opponents",
    "learning.td.afterstates",
    "learning.td.initial_values",
    "learning.td.update",
]


@inlined
def doubled(values: F64, i: int) -> float:
    return float(2.0 * values[i])


@kernel
def sum_of_doubled(values: F64) -> float:
    total = 0.0
    for i in range(values.size):
        total += doubled(values, i)
    return total


def sum_of_sum(values: F64) -> float:
    return 2.0 * sum_of_doubled(values)


@kernel_without_gil
def count_up(lock: I64, counts: I32, times: int) -> None:
    for _ in range(times):
        increment(counts, 0, True)
        acquire(lock)
        counts[1] += 1
        release(lock)
    increment(counts, 2, False)


@kernel_without_refcounts
def double_each(values: F64) -> None:
    for i in range(values.size):
        values[i] = doubled(values, i)


def test_threads_that_share_an_array_lose_no_change() -> None:
    threads, times = 3, 300_000
    lock, counts = new_lock(), np.zeros(3, np.int32)
    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(count_up, lock, counts, times) for _ in range(threads)]:
            done.result()
    assert counts[:2].tolist() == [threads * times] * 2
    assert 1 <= counts[2] <= threads
    assert lock[0] == 0


def inlined_functions(module: ModuleType) -> list[object]:
    return [value for value in vars(module).values() if isinstance(value, decorators._Inlined)]


def test_large_arrays_take_memory_only_as_they_are_written() -> None:
    np.ones(31 << 20, np.uint8)  # afterwards, glibc keeps freed blocks up to this size, and fills them with zeros
    freed = [np.empty(1 << 24, np.uint8) for _ in range(11)]
    _ = freed.pop()
    del freed
    before = resident_memory()
    arrays = [lazy_zeros((1 << 20, 2), np.float64) for _ in range(10)]
    assert resident_memory() < before + (1 << 24), "160 MiB are not filled with zeros"
    for array in arrays:
        assert array.shape == (1 << 20, 2)
        assert array.flags.c_contiguous
        array[-1, 1] += 2.0
    assert [array.sum() for array in arrays] == [2.0] * 10, "each array has memory of its own"


def test_too_large_an_array_is_a_memory_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MemoryError):
        lazy_zeros((1 << 46, 8), np.float64)
    monkeypatch.setattr("mmap.mmap", Mock(side_effect=OSError))
    assert lazy_zeros(1 << 18, np.float64).tolist() == [0.0] * (1 << 18), "a system without such pages"


@pytest.mark.parametrize("shape", [0, 7, (0, 3), (4, 3), (1 << 18, 1)])
def test_zeros_of_all_sizes_can_be_written(shape: int | tuple[int, ...]) -> None:
    array = lazy_zeros(shape, np.int32)
    assert array.shape == np.zeros(shape).shape
    assert array.dtype == np.int32
    assert not array.any()
    array[...] = 3
    assert array.sum() == 3 * array.size


def test_kernels_call_inlined_functions() -> None:
    values = np.arange(4.0)
    assert sum_of_doubled(values) == 12.0
    double_each(values)
    assert values.tolist() == [0.0, 2.0, 4.0, 6.0]


CALL = """
import numpy as np
from gamelore.players.lookahead import draw_best
draw_best(np.zeros(3), 0.0, np.uint64(1), np.uint64(2))
"""


def test_a_call_from_python_raises_and_does_not_crash() -> None:
    done = subprocess.run([sys.executable, "-c", CALL], capture_output=True, text=True)
    assert done.returncode == 1
    assert "TypeError: expected a kernel to call draw_best, got a call from Python; write a function" in done.stderr


@pytest.mark.parametrize("name", MODULES)
def test_no_inlined_function_can_be_called(name: str) -> None:
    functions = inlined_functions(import_module(f"gamelore.{name}"))
    assert functions
    for function in functions:
        with pytest.raises(TypeError, match="got a call from Python"):
            function()  # type: ignore[operator]


def test_numba_has_the_private_parts_that_the_decorators_use(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it fails after an upgrade of numba, see `players/kernel.py` and the bound on numba in pyproject.toml."""
    assert isinstance(normalize_signature("float64()")[1], numba.types.Float)
    assert isinstance(numba.types.BaseTuple.from_types((numba.types.int64,)), numba.types.UniTuple)
    assert {"__call__", "get_call_template"} <= set(dir(CPUDispatcher))
    assert fence._defn.__module__ == decorators.__name__
    assert doubled._cache._cache_file._source_stamp  # type: ignore[attr-defined]
    options = doubled.targetoptions  # type: ignore[attr-defined]
    assert [options[name] for name in ("no_cfunc_wrapper", "_nrt", "forceinline")] == [True, False, True]
    monkeypatch.setattr(decorators, "_Cache", lambda _: NullCache())  # numba does not show code from the cache
    code = {inlined: llvm_code(inlined, doubled), kernel: llvm_code(kernel, sum_of_doubled)}
    assert ["alwaysinline" in text for text in code.values()] == [True, False]  # forceinline
    assert ["@_ZN7cpython" in text for text in code.values()] == [False, True]  # no_cpython_wrapper
    assert not any("@cfunc." in text for text in code.values())  # no_cfunc_wrapper
    assert "NRT_" not in code[inlined]  # _nrt


def test_machine_code_is_cached() -> None:
    fresh = compile_again()
    assert sums_with(fresh)
    assert sum(fresh.stats.cache_hits.values()) == 1
    assert sum_of_doubled._cache.cache_path == fresh._cache.cache_path  # type: ignore[attr-defined]


@pytest.mark.parametrize("is_damaged", [False, True])
def test_a_disk_that_cannot_be_written_is_no_error(
    is_damaged: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(27, "File too large")

    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))
    if is_damaged:
        compile_again()
        (index,) = tmp_path.rglob("*.nbi")
        index.write_bytes(b"")
    monkeypatch.setattr(IndexDataCacheFile, "_open_for_write", refuse)
    assert sums_with(compile_again())
    assert {path.stat().st_size == 0 for path in tmp_path.rglob("*.nbi")} == ({True} if is_damaged else set())


def test_no_folder_for_the_cache_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    for locator in CacheImpl._locator_classes:
        monkeypatch.setattr(locator, "from_function", lambda *_: None)
    fresh = compile_again()
    assert isinstance(fresh._cache, NullCache)
    assert sums_with(fresh)


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
def test_damaged_machine_code_is_compiled_again(ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))
    compile_again()
    (path,) = tmp_path.rglob(f"*.{ending}")
    code = path.read_bytes()
    for damaged in (b"", bytes(len(code)), code[: len(code) // 2]):
        path.write_bytes(damaged)
        assert sums_with(compile_again())
        again = compile_again()
        assert sums_with(again)
        assert sum(again.stats.cache_hits.values()) == 1


def test_code_in_the_cache_is_loaded_with_the_first_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))
    compiled = compile_again()
    assert type(compiled) is CPUDispatcher
    assert compiled.signatures  # not in the cache, so it is compiled at once
    called, loaded, inside = (compile_again() for _ in range(3))
    assert not any(fresh.signatures for fresh in (called, loaded, inside))

    assert sums_with(called)
    assert called.signatures == compiled.signatures
    assert not loaded.signatures

    monkeypatch.setitem(globals(), "sum_of_doubled", inside)  # a kernel that another kernel calls
    assert kernel(sum_of_sum)(np.arange(4.0)) == 24.0
    assert inside.signatures == compiled.signatures
    assert not loaded.signatures

    load_kernels()
    assert loaded.signatures == compiled.signatures
    assert sums_with(loaded)
    assert {type(fresh) for fresh in (called, loaded, inside)} == {CPUDispatcher}
    with pytest.raises(TypeError, match="No matching definition"):
        loaded(np.arange(4))  # refuses other types, as a compiled kernel does


CALLER = """
from __future__ import annotations
from gamelore.players.kernel import kernel
from called import SHIFT, plain, through

@kernel
def caller(number: int) -> int:
    return through(number) + SHIFT

@kernel
def other(number: int) -> int:
    return plain(number)

def told() -> tuple[int, int]:
    return caller(3), other(3)
"""
CALLED = """
from __future__ import annotations
from gamelore.players.kernel import inlined, kernel
from deepest import FACTOR, deepest

SHIFT = 1

@inlined
def through(number: int) -> int:
    return later(number)

@inlined
def later(number: int) -> int:
    return deepest(number) * FACTOR

@kernel
def plain(number: int) -> int:
    return number
"""
DEEPEST = """
from __future__ import annotations
from gamelore.players.kernel import inlined

FACTOR = 100

@inlined
def deepest(number: int) -> int:
    return number
"""


def test_machine_code_is_compiled_again_when_a_function_in_it_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each change is in another module than the kernel: two calls away, and in a constant."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    sources = {"caller": CALLER, "called": CALLED, "deepest": DEEPEST}

    def told() -> tuple[tuple[int, int], list[int]]:
        """Return the results in a new process, as far as that matters, and how often code came from the cache."""
        for name, source in sources.items():
            (tmp_path / f"{name}.py").write_text(source, encoding="utf-8")
            sys.modules.pop(name, None)
        decorators._file_hash.cache_clear()
        caller = import_module("caller")
        result = caller.told()
        return result, [sum(function.stats.cache_hits.values()) for function in (caller.caller, caller.other)]

    assert told() == ((301, 3), [0, 0])
    assert told() == ((301, 3), [1, 1])
    files = sorted(path.name for path in tmp_path.rglob("*.nb*"))
    sources["deepest"] = DEEPEST.replace("return number", "return number + 1")
    assert told() == ((401, 3), [0, 1]), "the other kernel does not call it"
    sources["deepest"] = sources["deepest"].replace("100", "200")
    assert told() == ((801, 3), [0, 1])
    sources["caller"] = CALLER.replace("from called import SHIFT, ", "from constants import SHIFT; from called import ")
    sources["constants"] = "SHIFT = 5"
    assert told()[0] == (805, 3)
    sources["constants"] = "SHIFT = 6"
    assert told() == ((806, 3), [0, 1])
    sources["constants"] = "SHIFT = 6  # of the result"
    assert told() == ((806, 3), [1, 1])
    assert sorted(path.name for path in tmp_path.rglob("*.nb*")) == files, "old code is replaced"


class Inner(NamedTuple):
    first: int
    second: int


class Outer(NamedTuple):
    numbers: I64
    inner: Inner


def first_of(outer: Outer) -> int:
    return outer.inner.first


def test_the_code_of_a_kernel_depends_on_the_fields_of_tuples_in_tuples() -> None:
    (fields,) = (part for part in decorators._own_sources(first_of)[0] if part.startswith("Outer("))
    assert fields.startswith("Outer(numbers: typing.Annotated[")
    assert fields.endswith("inner: Inner(first: <class 'int'>, second: <class 'int'>))")


def test_threads_can_load_a_kernel_at_the_same_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))
    compile_again()
    for _ in range(10):
        fresh, together = compile_again(), Barrier(4)

        def call(fresh: Any = fresh, together: Barrier = together) -> bool:
            together.wait()
            return sums_with(fresh)

        with ThreadPoolExecutor(4) as threads:
            assert all(done.result() for done in [threads.submit(call) for _ in range(4)])
        assert len(fresh.signatures) == 1


IMPORTED = """
import gamelore.players.uct
from gamelore.players import kernel
print(len(kernel._to_load), sum(isinstance(unloaded, kernel._Unloaded) for unloaded in kernel._to_load))
"""


def test_an_import_loads_no_kernel() -> None:
    import_module("gamelore.players.uct")  # else its kernels might not be in the cache
    done = subprocess.run([sys.executable, "-c", IMPORTED], capture_output=True, text=True, check=True)
    num, num_to_load = map(int, done.stdout.split())
    assert num == num_to_load > 5


PLAYED = """
import sys
import numpy as np
import gamelore
from gamelore.players.kernel import F64, kernel

gamelore.play("tictactoe", ["random", "uct:simulations=20"], matches=1)
loaded_only = "scipy.linalg" not in sys.modules

@kernel
def squares(values: F64) -> F64:
    return np.sort(values**2)

print(loaded_only, squares(np.array([3.0, -1.0])).tolist())
"""


def test_kernels_from_the_cache_load_without_the_compiler_which_comes_with_the_next_compilation() -> None:
    gamelore.play("tictactoe", ["random", "uct:simulations=20"], matches=1)  # else some might not be in the cache
    done = subprocess.run([sys.executable, "-c", PLAYED], capture_output=True, text=True, check=True)
    assert done.stdout == "True [1.0, 9.0]\n"


EVERY_KERNEL = """
import sys
from importlib import import_module
from pkgutil import walk_packages
import gamelore

for module in walk_packages(gamelore.__path__, "gamelore."):
    if not module.name.endswith("__main__"):
        import_module(module.name)
from gamelore.players.kernel import _to_load, load_kernels
num = len(_to_load)
load_kernels()
print(num, "numba.np.arraymath" in sys.modules)  # which imports scipy.linalg
"""


def test_no_kernel_imports_scipy() -> None:
    for _ in range(2):  # the first process may compile kernels that no other test has needed
        done = subprocess.run([sys.executable, "-c", EVERY_KERNEL], capture_output=True, text=True, check=True)
        num, has_scipy = done.stdout.split()
        if has_scipy == "False":
            break
    assert (int(num) > 100, has_scipy) == (True, "False")


def compile_again() -> Any:
    """Compile `sum_of_doubled` as a new start of Python would."""
    return kernel(sum_of_doubled.py_func)  # type: ignore[attr-defined]


def sums_with(function: Any) -> bool:
    return bool(function(np.arange(4.0)) == 12.0)


def llvm_code(decorator: Any, decorated: Any) -> str:
    """Compile a function and return its code."""
    fresh = decorator(decorated.py_func)
    types = numba.types.float64[::1], numba.types.int64
    fresh.get_call_template(types if decorator is inlined else types[:1], {})
    return "".join(fresh.inspect_llvm().values())
