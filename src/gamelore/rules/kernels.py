"""Kernels: machine code that is the same for every game, compiled once on each machine.

What is written in `ir.py` becomes one here; what games differ in, they are told by records of numbers and addresses.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from .cache import fingerprint, object_file
from .circuit import Circuit
from .native import LoadedCode, compile_circuit, target_machine
from .planes import ATTRIBUTES, VECTOR

LEVEL = 2
DECLARATIONS = f"""
declare i64 @llvm.umin.i64(i64, i64)
declare i64 @llvm.umax.i64(i64, i64)
declare i64 @llvm.usub.sat.i64(i64, i64)
declare i64 @llvm.cttz.i64(i64, i1)
declare i64 @llvm.ctpop.i64(i64)
declare i64 @llvm.vector.reduce.or.v8i64({VECTOR})
declare {VECTOR} @llvm.ctpop.v8i64({VECTOR})
declare {VECTOR} @llvm.fshl.v8i64({VECTOR}, {VECTOR}, {VECTOR})
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
attributes #0 = {{ {ATTRIBUTES} }}
"""


@cache
def kernel(text: str) -> LoadedCode:
    """The functions of this IR, loaded once."""
    return load_kernel(text)


def load_kernel(text: str) -> LoadedCode:
    """The functions and data of this IR, loaded anew; compiled where this machine's cache does not have them."""
    return LoadedCode(object_file(text + DECLARATIONS, _compiled))


def compiled(circuit: Circuit) -> LoadedCode:
    """The functions of a circuit, loaded anew; compiled where this machine's cache does not have them."""
    return LoadedCode(object_file(fingerprint(circuit), lambda _: compile_circuit(circuit)))


def _compiled(text: str) -> bytes:
    import llvmlite.binding as llvm

    machine = target_machine(LEVEL)
    module = llvm.parse_assembly(text)
    _optimise(module, machine)
    return bytes(machine.emit_object(module))


def _optimise(module: Any, machine: Any) -> None:
    """Variables become registers, loops are tested at their end."""
    import llvmlite.binding as llvm

    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=LEVEL))
    passes = llvm.create_new_module_pass_manager()
    passes.add_sroa_pass()
    passes.add_simplify_cfg_pass()
    passes.add_loop_rotate_pass()
    passes.add_instruction_combine_pass()
    passes.run(module, builder)
