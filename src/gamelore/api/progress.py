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
    elif in_notebook():
        with _line() as tell:
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
    with Progress(
        *columns,
        console=console,
        disable=not console.is_terminal,
        transient=transient,
        redirect_stdout=False,  # what players print stays where it goes without bars
        redirect_stderr=False,
    ) as bars:
        tasks: dict[str, TaskID] = {}

        def tell(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, total=total)
            bars.update(tasks[stage], completed=done, total=total)

        yield tell


def in_notebook() -> bool:
    """Return whether a notebook runs this program, and shows objects as pictures."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return hasattr(shell, "kernel")


@contextmanager
def _line() -> Iterator[Progress]:
    """Yield a function that shows one line below the cell of a notebook; remove the line at the end."""
    from IPython.display import display

    handle = display({"text/plain": ""}, raw=True, display_id=True)
    begins: dict[str, float] = {}
    last = 0.0

    def tell(stage: str, done: int, total: int) -> None:
        nonlocal last
        now = monotonic()
        begin = begins.setdefault(stage, now)
        if now - last > BETWEEN_UPDATES:
            last = now
            left = f", about {(now - begin) / done * (total - done):.0f} s left" if done else ""
            handle.update({"text/plain": f"{stage}: {done} of {total}{left}"}, raw=True)

    try:
        yield tell
    finally:
        handle.update({"text/plain": ""}, raw=True)
