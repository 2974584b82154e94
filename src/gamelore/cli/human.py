"""A player at this terminal: the board is drawn, the legal moves are listed, a line of input is the move.

Here is every player by name, as in learn/players.py, and `human`: for the commands that play in a terminal.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np
import typer
from numpy.typing import NDArray

from ..learn.players import ROSTER as ROSTER
from ..learn.players import player as player
from ..play.graph import Graph
from ..play.lockstep import STAGE, run_lockstep
from ..play.match import MAX_PLIES, MatchRecord, match_records
from ..play.player import CAP, STUCK, Finished, Player, Started, Turn
from ..play.roster import Entry, enlist
from ..play.streams import stream
from ..rules.board import UNBROKEN, Boards
from .console import in_columns, show_width

if TYPE_CHECKING:
    from ..rules.game import Game

MENU_LINES = 12  # of legal moves, unless all are asked for
HELP = (
    "Type the number of a move, the move, or a part of it that no other move has; upper or lower case, and with or",
    "without its parentheses. Ctrl-D or Ctrl-C ends the match. All legal moves:",
)


class Human(Player):
    """Asks whoever is at the terminal. Raises EOFError from `choose` where the input has ended."""

    def __init__(self) -> None:
        self.scene: Scene | None = None  # where several humans play one match, they have one together

    def begin(self, role: int, started: Started) -> None:
        """See `Player.begin`."""
        self._seen(started.graph).begin(started.lanes.tolist())

    def choose(self, turn: Turn) -> NDArray[np.int32]:
        """See `Player.choose`."""
        return np.array([self._choose(turn, i) for i in range(len(turn.lanes))], np.int32)

    def _choose(self, turn: Turn, i: int) -> int:
        scene, game, row = self._seen(turn.graph), turn.graph.game, int(turn.rows[i])
        if turn.log is not None:
            lane = int(turn.lanes[i])
            scene.follow(turn.graph, lane, turn.log.rows[lane], turn.log.choices[lane], int(turn.plies[i]))
        menu = Menu([game.move_text(turn.role, action) for action in turn.graph.legal(row, turn.role).tolist()])
        if len(menu.moves) == 1:
            scene.say(f"{game.roles[turn.role]} can only play {menu.moves[0]}")
            return 0
        scene.draw(turn.graph.facts(row))
        return scene.ask(game.roles[turn.role], menu)

    def _seen(self, graph: Graph) -> Scene:
        if self.scene is None or self.scene.game is not graph.game:
            self.scene = Scene(graph.game)
        return self.scene


enlist("human", Entry("asks you for every move, here in the terminal; for `gamelore play` only", {}, Human))


def play_here(
    game: Game,
    seats: Sequence[Player],
    specs: Sequence[str],
    num_matches: int,
    seed: int,
    *,
    on_end: Callable[[Finished], None] | None = None,
    err: bool = False,
) -> list[MatchRecord]:
    """Matches with a human, as `one_by_one` plays them: the records of those that were over when the input ended.

    What is shown goes to standard output, with `err` to standard error.
    """
    scene = Scene(game, err)
    for seat in seats:
        if isinstance(seat, Human):
            seat.scene = scene
    over = 0

    def end(finished: Finished) -> None:
        nonlocal over
        over += 1
        scene.end(finished)
        if on_end is not None:
            on_end(finished)
        scene.say("", *([f"match {over + 1} of {num_matches}"] if over < num_matches else []))

    scene.say(", ".join(f"{role} is {spec}" for role, spec in zip(game.roles, specs, strict=True)))
    records = one_by_one(game, seats, specs, num_matches, seed, end)
    if len(records) < num_matches:
        scene.say("", "the input has ended, and the match with it")
    return records


def one_by_one(
    game: Game,
    seats: Sequence[Player],
    specs: Sequence[str],
    num_matches: int,
    seed: int,
    on_end: Callable[[Finished], None],
) -> list[MatchRecord]:
    """The matches that `play_matches` plays side by side, one after the other; up to an EOFError of a player."""
    records: list[MatchRecord] = []

    def end(finished: Finished) -> None:
        keys = [(seed, 0, STAGE, match) for match in finished.matches.tolist()]
        records.extend(match_records(finished, specs, keys))
        on_end(finished)

    with suppress(EOFError):
        run_lockstep(Graph(game), seats, [stream(seed, 0, STAGE)], num_matches, on_end=end)
    return records


class Scene:
    """What is shown of matches of a game, and what is asked."""

    def __init__(self, game: Game, err: bool = False) -> None:
        self.game = game
        self._err = err
        self._picture = Picture(game)
        self._shown: dict[int, int] = {}  # lane -> how many plies of its match were shown

    def begin(self, lanes: Iterable[int]) -> None:
        """Matches begin in these lanes."""
        self._shown.update(dict.fromkeys(lanes, 0))

    def say(self, *lines: str) -> None:
        """Lines of text."""
        typer.echo("\n".join(lines), err=self._err)

    def draw(self, facts: Iterable[str]) -> None:
        """A position, with an empty line before it."""
        self.say("", *self._picture.lines(facts))

    def follow(self, graph: Graph, lane: int, rows: NDArray[np.int32], choices: NDArray[np.int32], plies: int) -> None:
        """The moves of a lane's match that were not shown yet: it went through these rows by these choices."""
        for ply in range(self._shown.get(lane, 0), plies):
            self.say(f"{ply + 1}. {told_moves(graph, int(rows[ply]), choices[ply].tolist())}")
        self._shown[lane] = plies

    def end(self, finished: Finished) -> None:
        """How matches ended."""
        for i, lane in enumerate(finished.lanes.tolist()):
            plies, end = int(finished.plies[i]), int(finished.ends[i])
            self.follow(finished.graph, lane, finished.rows[i], finished.choices[i], plies)
            self.draw(finished.graph.facts(int(finished.rows[i, plies])))
            self.say("", _verdict(self.game.roles, finished.goals[i].tolist(), end))

    def ask(self, role: str, menu: Menu) -> int:
        """A role's move, as its place in the menu; asks until it is one. Raises EOFError where the input ends."""
        self.say("", *menu.lines())
        while True:
            text = self._line(f"move of {role} (? for help): ")
            if text == "?":
                self.say(*HELP, *menu.lines(most=len(menu.moves)))
                continue
            found = menu.find(text)
            if len(found) == 1:
                return found[0]
            if found:
                self.say("that may be several moves:", *menu.lines(found))
            elif text:
                self.say(f"no legal move is that: {text[:40]!a}")

    def _line(self, prompt: str) -> str:
        """A line of input, whatever bytes it holds."""
        try:
            typer.echo(prompt, nl=False, err=self._err)
            line = sys.stdin.buffer.readline() if sys.stdin else b""
        except KeyboardInterrupt:
            self.say()
            raise
        if not line:
            raise EOFError
        text = line.decode(errors="replace").strip()
        if not sys.stdin.isatty():
            self.say(ascii(text)[1:-1])  # nobody has seen it
        return text


class Menu:
    """Legal moves with their numbers, and which of them a text means.

    Where moves have one number each, as in (drop 4), this is theirs, for in a list that gets shorter another one would
    mislead; else they are counted from 1.
    """

    def __init__(self, moves: Sequence[str]) -> None:
        self.moves = tuple(moves)
        own = [re.findall(r"(?<![^\s()])\d+(?![^\s()])", move) for move in moves]
        numbers = [number for inside in own for number in inside]
        are_own = numbers and len(set(numbers)) == len(numbers) and max(map(len, own)) == 1
        self.numbers = tuple("".join(inside) if are_own else str(i) for i, inside in enumerate(own, 1))
        self._words = [_words(move) for move in moves]

    def find(self, text: str) -> list[int]:
        """The places of the moves that a text can mean: as a number, a move, words of one, or else any part of one."""
        words, part = _words(text), " ".join(text.lower().split())
        if not words:
            return []
        ways: tuple[Callable[[int], bool], ...] = (
            lambda place: self.numbers[place] == part,
            lambda place: self._words[place] == words,
            lambda place: _stand_in(words, self._words[place]),
            lambda place: part in self.moves[place].lower(),
        )
        return next(filter(None, ([p for p in range(len(self.moves)) if means(p)] for means in ways)), [])

    def lines(self, places: Sequence[int] | None = None, most: int = MENU_LINES) -> list[str]:
        """These moves, or all of them, with their numbers in columns; at most so many lines."""
        shown = range(len(self.moves)) if places is None else places
        numbers = [f"{number}:" if number else "" for number in self.numbers]
        margin = max(map(len, numbers))
        texts = [f"{numbers[place]:>{margin}} {self.moves[place]}" for place in shown]
        lines = in_columns(texts, indent=2, gap=3)
        return lines if len(lines) <= most else [*lines[: most - 1], f"  .. of {len(texts)} moves; ? shows them all"]


class Picture:
    """How the positions of a game are shown: its boards, then the facts that are on none."""

    def __init__(self, game: Game) -> None:
        self._boards = Boards(game.rulesheet, game.facts(game.initial))

    def drawn(self, facts: Iterable[str]) -> tuple[list[str], list[str]]:
        """(boards, each of several lines; the other facts)."""
        return self._boards.draw(facts, width=show_width())

    def lines(self, facts: Iterable[str]) -> list[str]:
        """A position as lines of text."""
        boards, others = self.drawn(facts)
        told = "  ".join(fact.replace(" ", UNBROKEN) for fact in others)
        parts = [*boards, "\n".join(textwrap.wrap(told, show_width())).replace(UNBROKEN, " ")]
        return "\n\n".join(filter(None, parts)).split("\n")


def _words(text: str) -> list[str]:
    return re.findall(r"[^\s()]+", text.lower())


def _stand_in(part: list[str], words: list[str]) -> bool:
    """Whether the words of a part stand together among words."""
    return any(words[start : start + len(part)] == part for start in range(len(words) - len(part) + 1))


def told_moves(graph: Graph, row: int, choices: Sequence[int]) -> str:
    """A joint move: what was played by those whose turn it was or who had a choice."""
    game = graph.game
    moves = [game.move_text(role, int(graph.legal(row, role)[choice])) for role, choice in enumerate(choices)]
    chose = [role for role in range(game.num_roles) if graph.acting[row, role] or graph.num_moves[row, role] > 1]
    return ", ".join(f"{game.roles[role]} {moves[role]}" for role in chose or range(game.num_roles))


def _verdict(roles: Sequence[str], goals: Sequence[int], end: int) -> str:
    if end == STUCK:
        return "The match is stuck: a role has no legal move"
    if end == CAP:
        return f"The match is broken off after {MAX_PLIES} plies"
    results = zip(roles, ("none" if goal < 0 else goal for goal in goals), strict=True)
    return f"The match is over: {', '.join(f'{role} {goal}' for role, goal in results)}"
