"""The hostile fuzzers, `make hostile`: each does what an enemy or bad luck does, and the program must bear it."""

from __future__ import annotations

import exports
import floods
from fuzz.fuzzer import Fuzzer

HOSTILE = {
    "floods": Fuzzer(floods.drawn, floods.assert_in_proportion),
    "imports": Fuzzer(exports.mutated, exports.assert_import_does_no_harm),
}
