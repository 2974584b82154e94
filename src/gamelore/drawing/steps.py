"""A series of pictures in HTML, of which one is shown: the arrow keys go from step to step, without any script."""

from __future__ import annotations

from collections.abc import Sequence

from .position import escaped

CHECKED = ' checked=""'
MOST_STEPS = 300  # pictures in one page; more would take long to show


def steps_html(pictures: Sequence[str], captions: Sequence[str]) -> str:
    """Return HTML that shows one picture at a time, with its caption and a button for each step.

    Args:
        pictures: SVG or HTML; only the first MOST_STEPS are shown.
        captions: texts below the pictures.
    """
    number = min(len(pictures), MOST_STEPS)
    rules = "".join(
        f".gamelore-steps>input:nth-of-type({i}):checked~div:nth-of-type({i}){{display:block}}"
        for i in range(1, number + 1)
    )
    buttons = (
        f'<input type="radio" name="step" aria-label="step {i}" title="step {i}"{CHECKED if i == 0 else ""}/>'
        for i in range(number)
    )
    steps = (
        f"<div>{picture}<p>{escaped(caption)}</p></div>"
        for picture, caption in zip(pictures[:number], captions[:number], strict=True)
    )
    left = f"<p>{len(pictures) - number} further steps are not shown.</p>" if number < len(pictures) else ""
    style = f"<style>.gamelore-steps>div{{display:none}}{rules}</style>"
    # the form keeps the buttons of two series in one page apart
    return f'<form class="gamelore-steps">{style}{"".join(buttons)}{"".join(steps)}{left}</form>'
