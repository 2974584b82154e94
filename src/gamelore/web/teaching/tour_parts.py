"""The parts of which the steps of the tour are made: text, tasks with feedback, small boards, guesses, and verdicts."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from html import escape
from typing import Any, ClassVar

from nicegui import background_tasks, ui

from ...errors import GameloreError
from ..pages.clickable_board import ClickableBoard
from ..pages.frame import complain, picture, told
from .tour_visit import Tour, Visit

STYLE = """
.gl-tour { max-width: 60rem; --gl-good: #1b6e3c; --gl-tint: #eef4fb; --gl-line: #c3cad2; }
body.body--dark .gl-tour { --gl-good: #7fd6a0; --gl-tint: #20272f; --gl-line: #4a535d; }
.gl-stack { display: flex; flex-direction: column; align-items: stretch; gap: 1rem; }
.gl-tour p.gl-text { font-size: 1.06rem; line-height: 1.6; max-width: 43rem; margin: 0; }
.gl-tour code { font-family: ui-monospace, Consolas, monospace; font-size: 0.94em; padding: 0 0.2em;
  border-radius: 4px; background: var(--gl-tint); white-space: nowrap; }
.gl-task { border-left: 5px solid var(--gl-accent); background: var(--gl-tint); padding: 0.9rem 1rem;
  border-radius: 0 8px 8px 0; }
.gl-task code { background: transparent; padding: 0; }
.gl-good { color: var(--gl-good); }
body.body--dark .gl-tour :is(.text-primary, .q-radio) { --q-primary: var(--gl-accent); }
.gl-steps { display: flex; gap: 0.3rem; list-style: none; padding: 0; margin: 0.2rem 0 0; }
.gl-steps li { flex: 0 1 1.9rem; }
.gl-steps a { display: flex; align-items: center; justify-content: center; aspect-ratio: 1; border-radius: 50%;
  border: 2px solid var(--gl-line); color: var(--gl-ink); text-decoration: none; font-weight: bold; font-size: 0.9rem; }
.gl-steps a.gl-done { border-color: var(--gl-good); color: var(--gl-good); }
.gl-steps a[aria-current] { background: var(--gl-accent); border-color: var(--gl-accent); color: var(--gl-paper); }
.gl-turn { display: flex; gap: 0.75rem; justify-content: space-between; align-items: center; margin-top: 0.5rem; }
.gl-code { font-family: ui-monospace, Consolas, monospace; font-size: 0.84rem; line-height: 1.45; margin: 0;
  padding: 0.6rem; overflow: auto; border: 1px solid var(--gl-line); border-radius: 6px; background: var(--gl-paper);
  white-space: pre; }
.gl-code .gl-changed { background: #ffe9a8; color: #22262b; font-weight: bold; }
.gl-cards { display: grid; gap: 0.75rem; width: 100%;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 17rem), 1fr)); }
.gl-card { border: 1px solid var(--gl-line); border-radius: 8px; padding: 0.6rem; background: var(--gl-paper); }
.gl-same { border: 2px solid var(--gl-good); }
.gl-chip { border: 1px solid var(--gl-line); border-radius: 6px; padding: 0 0.4rem; background: var(--gl-paper);
  white-space: nowrap; font-size: 0.92rem; }
.gl-bar { height: 0.6rem; border-radius: 3px; background: var(--gl-accent); }
.gl-scaled svg { width: 100%; }
@media (max-width: 599px) {
  .gl-tour { padding-left: 0; padding-right: 0; }
  .gl-turn { flex-direction: column-reverse; align-items: stretch; }
  .gl-chip { font-size: 0.85rem; padding: 0 0.25rem; }
}
"""
ENDS = {"L": "you lose", "D": "draw", "W": "you win"}
GUESSES = {"better": "better", "equal": "no clear difference", "worse": "worse"}


class TourStep(ABC):
    """A step of the tour: its text, and a task.

    Args:
        tour: what all visitors share
        visit: what this visitor has done
        task_done: called when the task is done
    """

    title: ClassVar[str]

    def __init__(self, tour: Tour, visit: Visit, task_done: Callable[[], None]) -> None:
        self._tour, self._visit, self._task_done = tour, visit, task_done
        self._client = ui.context.client

    @abstractmethod
    def draw(self) -> None:
        """Draw what needs no computation."""

    async def load(self) -> None:
        """Draw what has to be computed. It is called when the browser is connected."""
        return

    def _task(self, text: str) -> TourTask:
        return TourTask(text, self._task_done)

    async def _ask(self, do: str, **given: Any) -> Any:
        return await self._tour.ask(do, **given)


class TourTask:
    """A box that says what to do, with an area to do it, and a line of feedback that screen readers speak.

    Args:
        text: see `prose`
        on_done: called when the task is done
        level: level of its heading
    """

    def __init__(self, text: str, on_done: Callable[[], None], level: int = 2) -> None:
        self._on_done = on_done
        with ui.element("section").classes("gl-task gl-stack").style("gap: 0.75rem").props('aria-label="task"'):
            with ui.row().classes("items-center gap-2 no-wrap"):
                ui.icon("touch_app", size="1.5rem").props("aria-hidden=true").style("color: var(--gl-accent)")
                ui.label("Try it").classes("text-lg font-bold").props(f"role=heading aria-level={level}")
            prose(text)
            self.area = ui.column().classes("w-full gap-3")
            with ui.row().classes("items-start gap-2 no-wrap").style("min-height: 1.7rem"):
                self._icon = ui.icon("check_circle", size="1.5rem").classes("gl-good").props("aria-hidden=true")
                self._icon.set_visibility(False)
                self._told = ui.label().props("role=status aria-live=polite data-testid=feedback")
                self._told.style("font-size: 1.06rem; max-width: 42rem")

    def tell(self, text: str) -> None:
        """Show feedback."""
        self._told.set_text(text)

    def finish(self, text: str) -> None:
        """Show feedback, and that the task is done."""
        self._told.set_text(text)
        self._icon.set_visibility(True)
        self._told.props("data-done=true")
        self._on_done()


def prose(*paragraphs: str) -> None:
    """Draw paragraphs of our own text. `*words*` are bold, and words in backquotes are code."""
    for text in paragraphs:
        marked = re.sub(r"\*(.+?)\*", r"<strong>\1</strong>", escape(text, quote=False))
        marked = re.sub(r"`(.+?)`", r"<code>\1</code>", marked)
        ui.html(marked, sanitize=True, tag="p").classes("gl-text")


def small_board(svg: str, label: str, width: str = "4.2rem") -> None:
    """Draw a small board. `label`: what screen readers say."""
    shown = ui.element("div").style(f"width: {width}; flex: none; line-height: 0").classes("gl-scaled")
    shown.props["role"], shown.props["aria-label"] = "img", label
    with shown:
        picture(svg)


def tree_picture(svg: str, label: str) -> None:
    """Draw the tree of a feature. `label`: what screen readers say."""
    shown = ui.element("div").style("line-height: 0; min-width: 0")
    shown.props["role"], shown.props["aria-label"] = "img", f"tree: {label}"
    with shown:
        picture(svg)


# ---- boards -----------------------------------------------------------------------------------------------------


class MoveBoard:
    """A board with the position after some joint moves, in which the visitor chooses moves by clicks.

    Args:
        tour: what all visitors share
        game: name of a shipped game
        on_move: called with a chosen move
        label: name of the board for screen readers
        width: largest width, as in CSS
    """

    def __init__(
        self, tour: Tour, game: str, on_move: Callable[[str], Awaitable[None]], label: str, width: str = "17rem"
    ) -> None:
        self._tour, self._game, self._on_move = tour, game, on_move
        self.plies: list[list[str]] = []
        self.legal: Mapping[str, Sequence[str]] = {}
        self._is_busy = False
        self._board = ClickableBoard(self._clicked, label).style(f"max-width: {width}")

    @property
    def mover(self) -> str:
        """The role that chooses in the position."""
        return max(self.legal, key=lambda role: len(self.legal[role]))

    def joint(self, move: str) -> list[str]:
        """Return the joint move in which the role that chooses makes a move."""
        return [move if role == self.mover else legal[0] for role, legal in self.legal.items()]

    async def show(self, plies: list[list[str]], spoken: str = "", *, can_move: bool = True) -> None:
        """Show the position after joint moves. `spoken`: what screen readers say."""
        view = await self._tour.view(self._game, plies)
        if self._board.is_deleted:
            return
        self.plies, self.legal = plies, view["legal"]
        paths = view["clicks"].get(self.mover, []) if self.legal and can_move else []
        self._board.show(view["svg"], paths, len(plies), spoken)

    def _clicked(self, indices: Sequence[int], ply: int, role: str) -> None:
        moves = self.legal.get(self.mover, ()) if self.legal else ()
        if not self._is_busy and ply == len(self.plies) and 0 <= indices[0] < len(moves):
            background_tasks.create(self._make(moves[indices[0]]), name="a move of the tour")

    async def _make(self, move: str) -> None:
        self._is_busy = True
        try:
            with self._board.client:
                await self._on_move(move)
        except GameloreError as error:
            with self._board.client:
                complain(str(error))
        finally:
            self._is_busy = False


# ---- guesses and verdicts ---------------------------------------------------------------------------------------


class Guess:
    """A question before an experiment: is the pupil better than the beginner?

    Args:
        question: the question, see `prose`
        given: what was answered before; empty if it was not
        on_guess: called with the answer
    """

    def __init__(self, question: str, given: str, on_guess: Callable[[str], Awaitable[None]]) -> None:
        self.given, self._on_guess = given, on_guess
        prose(question)
        with ui.row().classes("gap-2"):
            self._buttons = {
                guess: ui.button(words, on_click=told(partial(self._answer, guess))).props(
                    f"no-caps data-testid=guess-{guess}"
                )
                for guess, words in GUESSES.items()
            }
        self._show()

    async def _answer(self, guess: str) -> None:
        self.given = guess
        self._show()
        await self._on_guess(guess)

    def _show(self) -> None:
        for guess, button in self._buttons.items():
            is_given = guess == self.given
            button.props(add="unelevated" if is_given else "outline", remove="outline" if is_given else "unelevated")
            button.props["aria-pressed"] = "true" if is_given else "false"


def verdict(gain: Mapping[str, float]) -> str:
    """Return what an interval of a difference says, as a word of GUESSES."""
    return "better" if gain["low"] > 0 else "worse" if gain["high"] < 0 else "equal"


def gain_text(gain: Mapping[str, float]) -> str:
    """Return a difference of a pupil and the beginner with its interval, as text."""
    more = "more" if gain["mean"] >= 0 else "less"
    ends = f"{gain['low']:+.1f} to {gain['high']:+.1f}"
    return f"{abs(gain['mean']):.1f} points a match {more} than the beginner (interval of the difference: {ends})"


def guess_text(guess: str, result: str) -> str:
    """Return how a guess compares with the result, as text."""
    told_guess = f"Your guess was: {GUESSES[guess]}."
    return f"{told_guess} You were right." if guess == result else f"{told_guess} The result is: {GUESSES[result]}."
