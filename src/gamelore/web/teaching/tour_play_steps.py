"""Steps 1 to 4 of the tour: rules as a text, play, afterstates, and learning from results."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from nicegui import ui

from ...errors import counted
from ..pages.clickable_board import ClickableBoard
from ..pages.frame import complain, fill, told, waiting
from ..service.shared_match import SharedMatch
from .learning_curves import INK, PAPER
from .tour_parts import MoveBoard, TourStep, prose, small_board
from .tour_visit import TEACHER

EXCERPT_END = "; ---- what a move changes"
SHOWN_MOVES = ("(mark 2 2)", "(mark 1 1)")  # after which the board of the changed rules is drawn
NUM_PLIES = 3  # of the lines of play that lead to one afterstate
FRAMES, FRAME_SECONDS = 25, 0.12  # of the animation of a learner
MOST_MATCHES = 1000
ENOUGH_MATCHES = 100


# ---- 1 ----------------------------------------------------------------------------------------------------------


class LineChange(NamedTuple):
    """A change of a line of the rules: what it means, the line before it, and the line in its place."""

    about: str
    before: str = ""
    after: str = ""


CHANGES = {
    "none": LineChange("Leave the rules as they are"),
    "size": LineChange("Add a fourth row and column", "(index 3)", "(index 3)\n(index 4)"),
    "mark": LineChange("Let the first player write k, not x", "(piece xplayer x)", "(piece xplayer k)"),
    "begin": LineChange("Let the other player begin", "(init (control xplayer))", "(init (control oplayer))"),
}


class TextStep(TourStep):
    """Rules are a text: a changed line changes the board."""

    title = "A game is a text"

    def draw(self) -> None:
        """See `TourStep`."""
        prose(
            "Most programs can play only one game. gamelore is different: it reads the rules of a game as a text, "
            "and then it can play it. The language of such texts is called *GDL* (Game Description Language).",
            "Below you see the first part of the rules of tic-tac-toe. `(role xplayer)` says: there is a player with "
            "the name xplayer. `(index 3)` says: 3 is the number of a row and of a column. `(init (control "
            "xplayer))` says: at the start, it is the turn of xplayer.",
        )
        task = self._task("Change one line. gamelore reads the new text and draws the board after two moves.")
        self._told = task
        with task.area, ui.row().classes("w-full gap-6 items-start"):
            with ui.column().classes("gap-1").style("flex: 1; min-width: min(100%, 17rem)"):
                choices = {key: change.about for key, change in CHANGES.items()}
                self._choice = ui.radio(choices, value="none", on_change=self._changed).props("data-testid=change")
                self._board = ui.column().classes("gap-1").style("min-height: 11rem")
            with ui.column().classes("gap-1").style("flex: 1.4; min-width: min(100%, 19rem); max-width: 100%"):
                self._code = ui.element("pre").classes("gl-code w-full").style("max-height: 24rem").props("tabindex=0")
                self._code.props["aria-label"] = "rules of tic-tac-toe"
                ui.link("Open the whole text in the editor", f"/rulesheets?sheet=shipped/{TEACHER}").classes("gl-link")

    async def load(self) -> None:
        """See `TourStep`."""
        await self._changed()

    async def _changed(self) -> None:
        """Show the text with the chosen change, and the board that gamelore draws from it."""
        key, original = self._choice.value, self._tour.rules(TEACHER).text
        change = CHANGES[key]
        text = original.replace(change.before, change.after, 1) if change.before else original
        self._show_text(original, text)
        asked = self._ask("drawn", rules=text, wishes=SHOWN_MOVES)
        await fill(self._board, asked, partial(self._show_board, key), "gamelore reads the rules")

    def _show_text(self, original: str, text: str) -> None:
        known = set(original.splitlines())
        shown, _, hidden = text.partition(EXCERPT_END)
        lines = shown.splitlines()
        begin = next(number for number, line in enumerate(lines) if line.startswith("("))
        self._code.clear()
        with self._code:
            for line in lines[begin:]:
                ui.label(line or " ").classes("" if line in known else "gl-changed")
            ui.label(f"; .. and {len(hidden.splitlines())} more lines: what moves change, lines of three, the end")

    def _show_board(self, key: str, drawn: Mapping[str, Any]) -> None:
        small_board(drawn["svg"], "the board after two moves", "11rem")
        about = (
            f"{drawn['num_cells']} cells. {drawn['first']} begins and has {counted(drawn['num_moves'], 'legal move')}."
        )
        if key == "none":
            self._told.tell(f"gamelore found in this text: {about}")
        else:
            self._told.finish(f"One line is different, and the game is different: {about}")


# ---- 2 ----------------------------------------------------------------------------------------------------------


class PlayStep(TourStep):
    """A match against a random player: legal moves, joint moves, and points."""

    title = "Play by the rules"

    def draw(self) -> None:
        """See `TourStep`."""
        prose(
            "The rules say which moves are *legal*. You are `xplayer`. Your opponent `oplayer` is a program that "
            "does not think: it takes any legal move.",
            "In GDL, all players move at the same time. A player who has to wait makes the move `noop`, which means "
            "*no operation*. The moves of all players together are a *joint move*.",
            "What is true at a moment is written as *facts*. The fact `(control xplayer)` says that it is the turn of "
            "xplayer. At the end, the rules give points: *100* for a win, *50* for a draw, *0* for a loss.",
        )
        self._told = self._task("Play a match to its end. Click a free cell.")
        with self._told.area:
            self._area = ui.column().classes("w-full gap-2")

    async def load(self) -> None:
        """See `TourStep`."""
        await fill(self._area, self._tour.match(self._visit), self._draw_match, "gamelore sets up the board")

    def _draw_match(self, match: SharedMatch) -> None:
        with ui.row().classes("w-full gap-6 items-start"):
            with ui.column().classes("gap-2").style("flex: 1; min-width: min(100%, 15rem)"):
                self._board = ClickableBoard(partial(self._clicked, match), "board of tic-tac-toe")
                self._board.style("max-width: 17rem")
                ui.button("New match", icon="restart_alt", on_click=match.restart).props("outline dense no-caps")
            with ui.column().classes("gap-1").style("flex: 1; min-width: min(100%, 15rem)"):
                ui.label("Joint moves").classes("font-bold").props("role=heading aria-level=3")
                self._moves = ui.element("ol").classes("gl-mono text-sm")
                self._moves.style("margin: 0; padding-left: 1.8rem; list-style: decimal")
        self._client.on_delete(match.watch(partial(self._show, match)))
        self._show(match)

    def _clicked(self, match: SharedMatch, indices: Sequence[int], ply: int, role: str) -> None:
        legal = match.view["legal"]["xplayer"] if match.view is not None else []
        if "xplayer" in match.waiting and 0 <= indices[0] < len(legal):
            match.submit("xplayer", legal[indices[0]], ply)

    def _show(self, match: SharedMatch) -> None:
        """Show the match after a change of it."""
        if match.view is not None:
            is_mine = "xplayer" in match.waiting
            paths = match.view["clicks"].get("xplayer", []) if is_mine else []
            self._board.show(match.view["svg"], paths, len(match.plies))
        self._moves.clear()
        with self._moves:
            for joint in match.plies:
                with ui.element("li"):
                    ui.label(", ".join(f"{role} {move}" for role, move in zip(match.roles, joint, strict=True)))
        self._tell(match)

    def _tell(self, match: SharedMatch) -> None:
        if match.error:
            self._told.tell(match.error)
        elif match.is_over and match.view is not None:
            goals = match.view["goals"]
            mine, other = goals["xplayer"], goals["oplayer"]
            end = {100: "You have won", 0: "You have lost"}.get(mine, "A draw")
            self._told.finish(f"{end}: xplayer gets {mine} points, oplayer gets {other}.")
        elif match.waiting and match.view is not None:
            legal = match.view["legal"]
            other_moves = ", ".join(legal["oplayer"])
            self._told.tell(f"You have {counted(len(legal['xplayer']), 'legal move')}. oplayer has only {other_moves}.")
        else:
            self._told.tell("oplayer moves ..")


# ---- 3 ----------------------------------------------------------------------------------------------------------


class AfterstateStep(TourStep):
    """Two orders of moves lead to one afterstate."""

    title = "Afterstates"

    def draw(self) -> None:
        """See `TourStep`."""
        prose(
            "You make a move. Your opponent has not answered yet. The board at this moment is called an "
            "*afterstate*: the state after your move.",
            "gamelore does not learn *this move is good*. It learns *this afterstate is good*. There is a reason: "
            "different moves can lead to the same afterstate, and what is learned about it counts for all of them.",
        )
        self._told = self._task(
            "Left board: click three moves, x, o and x. Right board: come to the *same* afterstate, but in another "
            "order."
        )
        with self._told.area, ui.row().classes("w-full gap-6 items-start"):
            self._boards = [self._draw_line(number, name) for number, name in enumerate(("Left", "Right"))]
        self._counts = ui.column().classes("w-full gap-2")

    def _draw_line(self, number: int, name: str) -> MoveBoard:
        with ui.column().classes("gap-1").style("flex: 1; min-width: min(100%, 12rem); max-width: 15rem"):
            ui.label(f"{name} board").classes("font-bold").props("role=heading aria-level=3")
            board = MoveBoard(self._tour, TEACHER, partial(self._moved, number), f"{name} board", "14rem")
            ui.button("Clear", icon="clear", on_click=told(partial(self._show, number, []))).props(
                f'outline dense no-caps aria-label="clear the {name.lower()} board"'
            )
        return board

    async def load(self) -> None:
        """See `TourStep`."""
        for number, plies in enumerate(self._visit.lines):
            await self._show(number, plies)

    async def _moved(self, number: int, move: str) -> None:
        board = self._boards[number]
        await self._show(number, [*board.plies, board.joint(move)])

    async def _show(self, number: int, plies: list[list[str]]) -> None:
        """Show a line of play on a board, and compare both afterstates."""
        self._visit.lines[number][:] = plies
        spoken = f"{counted(len(plies), 'move')} made"
        await self._boards[number].show(list(plies), spoken, can_move=len(plies) < NUM_PLIES)
        await self._compare()

    async def _compare(self) -> None:
        left, right = self._visit.lines
        if len(left) < NUM_PLIES or len(right) < NUM_PLIES:
            name, plies = ("Left", left) if len(left) < NUM_PLIES else ("Right", right)
            return self._told.tell(f"{name} board: {'xox'[len(plies)]} is to move.")
        same = await self._ask("compare", left=left, right=right)
        if not same["is_same"]:
            turned = " They are the same if you turn or mirror the board, but that is not enough here."
            return self._told.tell(
                f"These are two different afterstates.{turned * same['is_turned']} Clear the right board and try again."
            )
        if left == right:
            return self._told.tell(
                "The same afterstate, but also the same order. Begin the right board with your other x."
            )
        self._told.finish("Two ways, one afterstate. A learner that knows its value knows it for both ways.")
        await self._show_counts()

    async def _show_counts(self) -> None:
        orders, census = await self._ask("orders", plies=NUM_PLIES), await self._ask("census")
        if self._counts.is_deleted:
            return
        self._counts.clear()
        with self._counts:
            prose(
                f"gamelore has counted: three moves can be made in *{orders['lines']:,}* ways, but they lead to only "
                f"*{orders['boards']:,}* boards. Tic-tac-toe has *{orders['matches']:,}* different matches, and x "
                f"can make only *{census['afterstates']:,}* different afterstates. That is much less to learn."
            )


# ---- 4 ----------------------------------------------------------------------------------------------------------


class LearningStep(TourStep):
    """One learner: values of afterstates before and after matches."""

    title = "Learning from results"

    def draw(self) -> None:
        """See `TourStep`."""
        prose(
            "Each afterstate gets a *value*: the points that the learner expects at the end. At the beginning it knows "
            "nothing, so every value is 50.",
            "After a match, it changes the values of the afterstates that it has seen: a little up after a win, a "
            "little down after a loss. In the next match, it takes the moves with the highest values; now and then, it "
            "tries another one. That is all. Nobody tells it what is good.",
            "Its opponent is *careful*: it wins if it can win at once, and it stops a line of three if it can. "
            "Otherwise it has habits: in the same position, it almost always makes the same move.",
        )
        self._is_playing = False
        self._told = self._task(
            "Let the learner play. The board shows the values of its nine first moves, and how often it has tried "
            f"each of them (3x). Play at least {ENOUGH_MATCHES} matches."
        )
        with self._told.area:
            with ui.row().classes("gap-2"):
                for number in (1, 10, 100):
                    ui.button(counted(number, "match", "matches"), on_click=told(partial(self._play, number))).props(
                        f"no-caps data-testid=play-{number}"
                    )
                ui.button("New learner", icon="restart_alt", on_click=told(self._begin_anew)).props("outline no-caps")
            with ui.row().classes("w-full gap-6 items-start"):
                self._board = (
                    ui.column().classes("gap-1").style("flex: 1; min-width: min(100%, 13rem); max-width: 16rem")
                )
                with ui.column().classes("gap-1").style("flex: 1.6; min-width: min(100%, 16rem)"):
                    self._chart = ui.echart(reward_options([]), renderer="svg").classes("w-full rounded")
                    self._chart.style("height: 14rem").props("role=img")
                    self._chart.props["aria-label"] = "points of the learner; the text below says the last ones"

    async def load(self) -> None:
        """See `TourStep`."""
        with self._board:
            waiting("the learner gets ready")
        await self._show(self._visit.learned)

    async def _play(self, number: int) -> None:
        """Let the learner play, and show how its values change."""
        begin, end = self._visit.learned, min(MOST_MATCHES, self._visit.learned + number)
        if begin == end:
            return complain(f"It has played {end:,} matches, and knows enough. Take a new learner.")
        if self._is_playing:
            return
        self._is_playing = True
        try:
            for matches in sorted({begin + round((end - begin) * (i + 1) / FRAMES) for i in range(FRAMES)} - {begin}):
                if self._board.is_deleted or not self._is_playing:
                    break
                await self._show(matches)
                await asyncio.sleep(FRAME_SECONDS)
        finally:
            self._is_playing = False

    async def _begin_anew(self) -> None:
        self._is_playing = False
        self._visit.seed += 1
        await self._show(0)

    async def _show(self, matches: int) -> None:
        """Show what the learner knows after some matches."""
        learned = await self._ask("learned", seed=self._visit.seed, matches=matches)
        if self._board.is_deleted:
            return
        self._visit.learned = matches
        self._board.clear()
        with self._board:
            small_board(learned["svg"], "values of the first moves", "100%")
        self._chart.options.clear()
        self._chart.options.update(reward_options(learned["points"]))
        self._chart.update()
        text = learned_text(matches, learned)
        self._told.finish(text) if matches >= ENOUGH_MATCHES else self._told.tell(text)


def learned_text(matches: int, learned: Mapping[str, Any]) -> str:
    """Return how well a learner plays, as text."""
    if not matches:
        return "No match yet: it knows nothing."
    wins, draws, losses = learned["last_ends"]
    counts = f"{counted(wins, 'win')}, {counted(draws, 'draw')}, {counted(losses, 'loss', 'losses')}"
    if matches <= wins + draws + losses:
        return f"{counted(matches, 'match', 'matches')}: {counts}."
    number = wins + draws + losses
    return (
        f"{matches:,} matches. First {number} matches: {learned['first']:.0f} points a match. Last {number} matches: "
        f"{learned['last']:.0f} points a match ({counts})."
    )


def reward_options(points: Sequence[Sequence[float]]) -> dict[str, Any]:
    """Return the chart of the points of one learner, as options of ECharts."""
    axis = {"type": "value", "nameLocation": "middle", "axisLabel": {"color": INK}, "nameTextStyle": {"color": INK}}
    line = {"type": "line", "showSymbol": False, "color": "#1d5fa8", "data": list(points), "lineStyle": {"width": 2.5}}
    return {
        "backgroundColor": PAPER,
        "animation": False,
        "grid": {"left": 52, "right": 18, "top": 16, "bottom": 44},
        "xAxis": {**axis, "name": "matches", "nameGap": 26, "min": 1, "minInterval": 1},
        "yAxis": {**axis, "name": "points, mean of 20 matches", "nameGap": 34, "min": 0, "max": 100},
        "series": [line],
    }
