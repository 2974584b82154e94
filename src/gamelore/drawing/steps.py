"""A series of pictures in HTML, of which one is shown: the arrow keys go from step to step, without any script."""

from __future__ import annotations

from collections.abc import Sequence

from .position import escaped

CHECKED = ' checked=""'
MOST_STEPS = 300  # pictures in one page; more would take long to show


def shown_steps(number: int) -> list[int]:
    """Return which of a number of steps are shown: all, or the first ones and the last."""
    return [*range(min(number, MOST_STEPS) - 1), number - 1]


def steps_html(pictures: Sequence[str], captions: Sequence[str]) -> str:
    """Return HTML that shows one picture at a time, with its caption and a button for each step.

    Args:
        pictures: SVG or HTML, at most MOST_STEPS.
        captions: texts below the pictures.
    """
    rules = "".join(
        f".gamelore-steps>input:nth-of-type({i}):checked~div:nth-of-type({i}){{display:block}}"
        for i in range(1, len(pictures) + 1)
    )
    buttons = (
        f'<input type="radio" name="step" aria-label="step {i}" title="step {i}"{CHECKED if i == 0 else ""}/>'
        for i in range(len(pictures))
    )
    steps = (
        f"<div>{picture}<p>{escaped(caption)}</p></div>" for picture, caption in zip(pictures, captions, strict=True)
    )
    style = f"<style>.gamelore-steps>div{{display:none}}{rules}</style>"
    # the form keeps the buttons of two series in one page apart; the method dialog sends nothing
    return f'<form class="gamelore-steps" method="dialog">{style}{"".join(buttons)}{"".join(steps)}</form>'
