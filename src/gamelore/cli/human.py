"""The player `human`: draws the board, lists the legal moves, and reads a move from the terminal.

Importing this module registers this player in `catalogue.PLAYERS`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import typer
from numpy.typing import NDArray

from ..api.playing import Matches, needed_solution, play_seats
from ..api.progress import progress_bars
from ..catalogue import PlayerKind, register
from ..drawing.position import state_text, text_boards
from ..matches.match import MAX_PLIES
from ..players.player import CAP, STUCK, Finished, Player, Started, Turn
from . import console

if TYPE_CHECKING:
    from ..game.game import Game
    from ..players.position_graph import PositionGraph

MENU_LINES = 12  # lines of legal moves in a prompt; after "?" the list is complete
HELP = (
    "Type the number of a move, the move, or a part of the move that no other move has. You may leave out parentheses",
    "and use capital or small letters. Ctrl-D or Ctrl-C ends the match. All legal moves:",
)


class Human(Player):
    """A player that asks the user for its moves at the terminal. `choose` raises EOFError at the end of the input."""

    def __init__(self) -> None:
        self.conversation: Conversation | None = None  # shared by all human players of a match

    def begin(self, role: int, started: Started) -> None:
        """See `Player.begin`."""
        self._conversation(started.graph).begin(started.lanes.tolist())

    def choose(self, turn: Turn) -> NDArray[np.int32]:
        """See `Player.choose`."""
        return np.array([self._choose(turn, i) for i in range(len(turn.lanes))], np.int32)

    def _choose(self, turn: Turn, i: int) -> int:
        """Show the position of match i in a turn, and ask for the move."""
        conversation, game, row = self._conversation(turn.graph), turn.graph.game, int(turn.rows[i])
        if turn.log is not None:
            lane = int(turn.lanes[i])
            conversation.follow(turn.graph, lane, turn.log.rows[lane], turn.log.choices[lane], int(turn.plies[i]))
        menu = Menu([game.move_text(turn.role, action) for action in turn.graph.legal(row, turn.role).tolist()])
        if len(menu.moves) == 1:
            conversation.say(f"{game.roles[turn.role]} can only play {menu.moves[0]}")
            return 0
        conversation.draw(turn.graph.facts(row))
        return conversation.ask(game.roles[turn.role], menu)

    def _conversation(self, graph: PositionGraph) -> Conversation:
        """Return the conversation about the game of the graph; begin a new conversation if the game has changed."""
        if self.conversation is None or self.conversation.game is not graph.game:
            self.conversation = Conversation(graph.game)
        return self.conversation


register("human", PlayerKind("asks you for every move in the terminal; only for `gamelore play`", {}, Human))


def play_here(
    game: Game, seats: Sequence[Player], specs: Sequence[str], num_matches: int, seed: int, regret: bool, err: bool
) -> Matches:
    """Play matches with a human player, one after the other; return the finished matches.

    The end of the input ends the series; a match that is not finished then has no record. Positions and prompts are
    printed on standard output or, with `err`, on standard error.
    """
    conversation = Conversation(game, err)
    for seat in seats:
        if isinstance(seat, Human):
            seat.conversation = conversation
    over = 0

    def end(finished: Finished) -> None:
        nonlocal over
        over += 1
        conversation.end(finished)
        conversation.say("", *([f"match {over + 1} of {num_matches}"] if over < num_matches else []))

    with progress_bars(transient=True) as tell:
        _solution = needed_solution(game, seats, regret, tell)
    conversation.say(", ".join(f"{role} is {spec}" for role, spec in zip(game.roles, specs, strict=True)))
    played = play_seats(
        game, specs, seats, num_matches, seed, regret=regret, one_by_one=True, ends_with_input=True, on_end=end
    )
    if len(played) < num_matches:
        conversation.say("", "the input has ended, so the match ends, too")
    return played


class Conversation:
    """The dialogue with the user at the terminal during matches of one game: positions, moves and prompts."""

    def __init__(self, game: Game, err: bool = False) -> None:
        self.game = game
        self._err = err
        self._boards = text_boards(game)
        self._shown: dict[int, int] = {}  # lane -> number of plies already shown

    def begin(self, lanes: Iterable[int]) -> None:
        """Begin a match in each of these lanes."""
        self._shown.update(dict.fromkeys(lanes, 0))

    def say(self, *lines: str) -> None:
        """Print lines of text."""
        typer.echo("\n".join(lines), err=self._err)

    def draw(self, facts: Iterable[str]) -> None:
        """Draw a position, after an empty line."""
        width = console.show_width()
        self.say("", *state_text(self._boards, facts, width).lines(width))

    def follow(
        self, graph: PositionGraph, lane: int, rows: NDArray[np.int32], choices: NDArray[np.int32], plies: int
    ) -> None:
        """Print the moves of a match that were not shown yet.

        `rows` and `choices` are the position and the joint move of each ply; `plies` is the number of plies so far.
        """
        for ply in range(self._shown.get(lane, 0), plies):
            self.say(f"{ply + 1}. {told_moves(graph, int(rows[ply]), choices[ply].tolist())}")
        self._shown[lane] = plies

    def end(self, finished: Finished) -> None:
        """Show the last moves, the final positions and the results of matches."""
        for i, lane in enumerate(finished.lanes.tolist()):
            plies, end = int(finished.plies[i]), int(finished.ends[i])
            self.follow(finished.graph, lane, finished.rows[i], finished.choices[i], plies)
            self.draw(finished.graph.facts(int(finished.rows[i, plies])))
            self.say("", _verdict(self.game.roles, finished.goals[i].tolist(), end))

    def ask(self, role: str, menu: Menu) -> int:
        """Ask until the answer means exactly one legal move; return its index. Raises EOFError at the end of input."""
        self.say("", *menu.lines())
        while True:
            text = self._line(f"move of {role} (? for help): ")
            if text == "?":
                self.say(*HELP, *menu.lines(most=len(menu.moves)))
                continue
            matching = menu.find(text)
            if len(matching) == 1:
                return matching[0]
            if matching:
                self.say("this can mean several moves:", *menu.lines(matching))
            elif text:
                self.say(f"this is not a legal move: {text[:40]!a}")

    def _line(self, prompt: str) -> str:
        """Read a line of input; replace bytes that are not UTF-8. Raises EOFError at the end of input."""
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
            self.say(ascii(text)[1:-1])  # print input that comes from a pipe or file, because no terminal shows it
        return text


class Menu:
    """A numbered list of legal moves, with a search for the moves that an input text can mean.

    If each move contains exactly one number, as in (drop 4), and all these numbers differ, each move has this number in
    the list. It does not change when other moves become illegal. Otherwise the moves are numbered from 1.
    """

    def __init__(self, moves: Sequence[str]) -> None:
        self.moves = tuple(moves)
        own = [re.findall(r"(?<![^\s()])\d+(?![^\s()])", move) for move in moves]
        numbers = [number for inside in own for number in inside]
        are_own = numbers and len(set(numbers)) == len(numbers) and max(map(len, own)) == 1
        self.numbers = tuple("".join(inside) if are_own else str(i) for i, inside in enumerate(own, 1))
        self._words = [_words(move) for move in moves]

    def find(self, text: str) -> list[int]:
        """Return the indices of the moves that a text can mean.

        The text is the number of a move, a whole move, successive words of a move, or any part of a move. These four
        ways are tried in this order until one of them finds moves.
        """
        words, part = _words(text), " ".join(text.lower().split())
        if not words:
            return []
        ways: tuple[Callable[[int], bool], ...] = (
            lambda index: self.numbers[index] == part,
            lambda index: self._words[index] == words,
            lambda index: _contains(self._words[index], words),
            lambda index: part in self.moves[index].lower(),
        )
        return next(filter(None, ([i for i in range(len(self.moves)) if matches(i)] for matches in ways)), [])

    def lines(self, indices: Sequence[int] | None = None, most: int = MENU_LINES) -> list[str]:
        """Return numbered moves in columns, in at most `most` lines. `indices`: the moves to show; None for all."""
        shown = range(len(self.moves)) if indices is None else indices
        numbers = [f"{number}:" if number else "" for number in self.numbers]
        margin = max(map(len, numbers))
        texts = [f"{numbers[index]:>{margin}} {self.moves[index]}" for index in shown]
        lines = console.in_columns(texts, indent=2, gap=3)
        return (
            lines
            if len(lines) <= most
            else [*lines[: most - 1], f"  ... ({len(texts)} moves; type ? to see all of them)"]
        )


def _words(text: str) -> list[str]:
    return re.findall(r"[^\s()]+", text.lower())


def _contains(words: list[str], part: list[str]) -> bool:
    """Return whether the words of `part` occur in `words` in the same order, one directly after the other."""
    return any(words[start : start + len(part)] == part for start in range(len(words) - len(part) + 1))


def told_moves(graph: PositionGraph, row: int, choices: Sequence[int]) -> str:
    """Return a joint move as text. Leave out roles that had only one legal move and whose turn it was not."""
    game = graph.game
    moves = [game.move_text(role, int(graph.legal(row, role)[choice])) for role, choice in enumerate(choices)]
    chose = [role for role in range(game.num_roles) if graph.acting[row, role] or graph.num_moves[row, role] > 1]
    return ", ".join(f"{game.roles[role]} {moves[role]}" for role in chose or range(game.num_roles))


def _verdict(roles: Sequence[str], goals: Sequence[int], end: int) -> str:
    """Return a sentence about the end of a match and the goals."""
    if end == STUCK:
        return "The match cannot continue: a role has no legal move"
    if end == CAP:
        return f"The match was stopped after {MAX_PLIES} plies"
    results = zip(roles, ("none" if goal < 0 else goal for goal in goals), strict=True)
    return f"The match is over: {', '.join(f'{role} {goal}' for role, goal in results)}"
