"""What a fuzzer is, and where the examples are kept on which one of them failed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

from evaluators import Unfit

FOUND = Path(__file__).parent / "found"

Example: TypeAlias = str | dict[str, Any]
"""A text, or what JSON can hold."""
Check: TypeAlias = Callable[[Any], None]


def not_reduced(example: Example, fails: Callable[[Any], bool]) -> Example:
    return example


@dataclass(frozen=True)
class Fuzzer:
    """`check` raises where an example shows a bug, and Unfit where there is nothing to check.

    `reduce` takes an example and a function that tells whether another one fails, too. `session` is for a check with
    something that takes long to start, such as a server: entered once for many examples, it gives a check that does
    the same as `check` alone. This check may have the attribute `figures`: what to tell about all examples so far.
    `steady_session` is for new examples in tests, if `check` measures time: its check does not depend on a machine.
    """

    draw: Callable[[Random], Example]
    check: Check
    reduce: Callable[[Any, Callable[[Any], bool]], Example] = not_reduced
    session: Callable[[], AbstractContextManager[Check]] | None = None
    steady_session: Callable[[], AbstractContextManager[Check]] | None = None

    def checking(self, *, steadily: bool = False) -> AbstractContextManager[Check]:
        """Give the check for many examples, one after the other; if `steadily`, one that no slow machine fails."""
        session = self.steady_session if steadily and self.steady_session else self.session
        return session() if session else nullcontext(self.check)

    def fails(self, example: Example) -> str:
        """The kind of failure, without what differs from example to example; empty where there is none."""
        try:
            self.check(example)
        except Unfit:
            return ""
        except Exception as error:
            return f"{type(error).__name__} {re.split(r'[^a-z, ]', str(error))[0]}"
        return ""

    def reduced(self, example: Example) -> Example:
        """A smaller example that fails in the same way."""
        kind = self.fails(example)
        return self.reduce(example, lambda smaller: self.fails(smaller) == kind) if kind else example


def store(name: str, example: Example, title: str) -> Path:
    """Write an example to where the tests replay it."""
    return write(example, FOUND / name / title)


def write(example: Example, path: Path) -> Path:
    """Write an example into a file; return its path, with the suffix of its kind."""
    place = path.with_name(f"{path.name}{'.kif' if isinstance(example, str) else '.json'}")
    place.parent.mkdir(parents=True, exist_ok=True)
    text = example if isinstance(example, str) else json.dumps(example, indent=1, ensure_ascii=False)
    place.write_text(text, encoding="utf-8", newline="")
    return place


def load(path: Path) -> Example:
    """Read what `write` wrote."""
    with path.open(encoding="utf-8", newline="") as file:
        text = file.read()
    example: Example = json.loads(text) if path.suffix == ".json" else text
    return example
