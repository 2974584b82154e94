"""The progress of long calls: bars on a terminal, a line of text in a notebook, nothing where output goes to a file.

A function of the public API has a parameter `progress`: None for the display that suits the place, False for none, or a
function that is called with (stage, done, total).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TypeAlias

Progress: TypeAlias = Callable[[str, int, int], None]
"""Function that is told (stage, done, total), such as ("matches", 20, 100)."""
BETWEEN_UPDATES = 0.3  # seconds, in a notebook


@contextmanager
def displayed(progress: Progress | bool | None) -> Iterator[Progress]:
    """Yield the function that shows progress as `progress` says, see above."""
    if callable(progress):
        yield progress
    elif progress is False:
        yield lambda stage, done, total: None
    elif "ipykernel" in sys.modules:
        with _in_notebook() as tell:
            yield tell
    else:
        with progress_bars(transient=True) as tell:
            yield tell


@contextmanager
def progress_bars(transient: bool = False) -> Iterator[Progress]:
    """Yield a function that shows a progress bar for each stage on standard error, with the remaining time.

    Bars appear only on a terminal. `transient`: clear the bars at the end.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TimeRemainingColumn

    columns = ("{task.description}", BarColumn(), MofNCompleteColumn(), "left:", TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=transient) as bars:
        tasks: dict[str, TaskID] = {}

        def tell(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, total=total)
            bars.update(tasks[stage], completed=done, total=total)

        yield tell


@contextmanager
def _in_notebook() -> Iterator[Progress]:
    """Yield a function that shows one line below the cell, and remove the line at the end."""
    from IPython.display import TextDisplayObject, display

    class Line(TextDisplayObject):  # type: ignore[misc]
        def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
            return {"text/plain": self.data}

    begin, last = monotonic(), 0.0
    handle = display(Line(""), display_id=True)

    def tell(stage: str, done: int, total: int) -> None:
        nonlocal last
        now = monotonic()
        if now - last > BETWEEN_UPDATES:
            last = now
            left = f", about {(now - begin) / done * (total - done):.0f} s left" if done else ""
            handle.update(Line(f"{stage}: {done} of {total}{left}"))

    try:
        yield tell
    finally:
        handle.update(Line(""))
