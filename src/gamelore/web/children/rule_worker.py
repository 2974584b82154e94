"""The child process in which the pages load, draw and play games: rules are never parsed in the process of the pages.

Each request has the text of the rules and the joint moves since the start, so that any child can answer it, also one
that replaces a child that died. What is computed for it is kept: loaded games, positions, searches and players.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, get_args

from ...api.exact import Solved
from ...api.opinion import Opinion, check_goes_on
from ...api.playing import list_players
from ...catalogue import named_player
from ...circuit.playout import load_shared_code
from ...drawing.board import Board, Place
from ...drawing.clicks import ClickMap
from ...drawing.position import Mark, state_svg
from ...drawing.thought import WIN, MoveThought, Thought, move_marks, thought_signs
from ...errors import GameloreError
from ...game.game import Game, Position, make
from ...gdl.lint import refuse
from ...gdl.syntax import parse
from ...learning.td.initial_values import Kind as LearnerKind
from ...matches.match import MatchRecord, MatchState
from ...net.belief import SLICE, LastingPlayer, PlayerMatches
from ...net.requests import answer_requests, limits_within, processor_time
from ...players.kernel import load_kernels
from ...players.position_graph import PositionGraph
from ...rulesheets import load, options
from .hints import Hints, learner_text

Plies: TypeAlias = Sequence[Sequence[str]]
"""The joint moves of a match since its start."""
Kept = TypeVar("Kept")

MOST_GAMES = 4  # loaded games in a process
MOST_POSITIONS = 2000  # of a game
MOST_OPINIONS = 3  # searches of a game, which have trees
OPINION_SEED = 1
OWN_OPTIONS = ("knowledge", "quota", "learn", "opponent", "seed")  # of players, set by the pages
MOST_PLAYERS = 3  # of a game, which have trees; the one that was not asked for the longest time is dropped
STORED = ("seqplayer",)  # players that read a store, and do not write it
SOLVER_MEMORY = 1.0  # GiB


class LoadedGame:
    """A game, with what was computed for it in this process."""

    def __init__(self, rules: str, name: str, limits: Any) -> None:
        sheet = parse(rules)
        refuse(sheet)
        self.game = make(sheet, name, limits=limits)
        self.boards = self.clicks.tabletop  # with trays beside the boards, so that every place has a number
        self.places = [place for board in self.boards.boards for place in _places(board)]
        self.numbers = {place: number for number, place in enumerate(self.places)}
        self.players: OrderedDict[str, SeatedPlayers] = OrderedDict()
        self._positions: OrderedDict[tuple[tuple[str, ...], ...], Position] = OrderedDict()
        self._opinions: OrderedDict[tuple[tuple[str, ...], ...], Opinion] = OrderedDict()

    @cached_property
    def clicks(self) -> ClickMap:
        """The clicks that make a move."""
        return ClickMap.of(self.game)

    @cached_property
    def hints(self) -> Hints:
        """All sources of hints about the game."""
        return Hints(self.game, self.boards, self.svg)

    @cached_property
    def solved(self) -> Solved:
        """The exact values of the game. Raise GameloreError if it cannot be solved."""
        from ...api.exact import solve

        return solve(self.game, memory=SOLVER_MEMORY, progress=False)

    def position(self, plies: Plies) -> Position:
        """Return the position after joint moves. Raise IllegalMoveError for an illegal one."""
        key = tuple(map(tuple, plies))
        start = next((ply for ply in range(len(key), 0, -1) if key[:ply] in self._positions), 0)
        position = self._positions[key[:start]] if start else self.game.start()
        for ply in range(start, len(key)):
            position = position.play(key[ply])
            _keep(self._positions, key[: ply + 1], position, MOST_POSITIONS)
        return position

    def opinion(self, plies: Plies) -> Opinion:
        """Return the search of a position, a new one if there is none."""
        key = tuple(map(tuple, plies))
        if key not in self._opinions:
            position = self.position(plies)
            check_goes_on(position)
            _keep(self._opinions, key, Opinion(position, seed=OPINION_SEED), MOST_OPINIONS)
        return self._opinions[key]

    def svg(self, position: Position, marks: Sequence[Mark] = (), heat: Mapping[Place, float] | None = None) -> str:
        """Draw a position, with a number on each place; for `heat` see `state_svg`."""
        return state_svg(self.boards, position.facts, self.game.roles, marks, self.numbers, heat)


class SeatedPlayers:
    """A player in all its matches of a game, which follows the matches of the pages."""

    def __init__(self, game: Game, spec: str, options: Mapping[str, Any]) -> None:
        self._matches = PlayerMatches(
            game, named_player(spec, without=OWN_OPTIONS, **options), seed=int(options.get("seed") or 0)
        )
        self._followed: dict[str, list[tuple[str, ...]]] = {}

    @property
    def is_used(self) -> bool:
        """Whether it plays in a match."""
        return bool(self._followed)

    def choose(self, match: str, role: str, plies: Plies, seconds: float, startclock: float) -> str:
        """Return a move, for which the player has some seconds, and once a startclock."""
        self._follow(f"{match} {role}", role, plies, startclock)
        return self._matches.choose(f"{match} {role}", time.monotonic() + seconds)

    def finish(self, match: str, role: str, plies: Plies) -> int | None:
        """Let the player learn from a finished match; return its number of matches if it keeps what it learns."""
        key = f"{match} {role}"
        self._follow(key, role, plies[:-1], 0.0)
        self._matches.stop(key, plies[-1] if plies else ())
        del self._followed[key]
        self._matches.learn()
        player, game = self._matches.player, self._matches.game
        if not isinstance(player, LastingPlayer):
            return None
        return player.num_matches(PositionGraph(game), game.roles.index(role))

    def leave(self, match: str, role: str) -> None:
        """End a match that is not finished; nothing is learned from it."""
        self._matches.abort(f"{match} {role}")
        self._followed.pop(f"{match} {role}", None)

    def _follow(self, key: str, role: str, plies: Plies, startclock: float) -> None:
        """Bring the player to a position. After an undo, it begins the match again."""
        followed, wanted = self._followed.get(key), list(map(tuple, plies))
        if followed is None or wanted[: len(followed)] != followed:
            self._matches.abort(key)
            self._followed.pop(key, None)
            deadline = time.monotonic() + startclock
            self._matches.start(key, role, startclock=startclock, deadline=deadline)
            while (now := time.monotonic()) < deadline and self._matches.ponder(key, min(deadline, now + SLICE)):
                pass
            self._matches.advance(key, ())
            followed = self._followed[key] = []
        for moves in wanted[len(followed) :]:
            self._matches.advance(key, moves)
            followed.append(moves)


class RuleWorker:
    """The requests of the pages that need rules.

    Args:
        memory: bytes for the process
        prepare_seconds: processor time to load a game
    """

    is_lasting = False

    def __init__(self, memory: int, prepare_seconds: float, **_: object) -> None:
        self._limits = limits_within(memory, prepare_seconds)
        self._prepare_seconds = prepare_seconds
        self._games: OrderedDict[str, LoadedGame] = OrderedDict()
        load_kernels()
        load_shared_code()

    def idle(self) -> bool:
        """Do nothing between requests."""
        return False

    def warm_up(self) -> None:
        """Load what the player gamelore needs. In a new installation this compiles it, which takes a minute."""
        Opinion(load("tictactoe").start()).go_on(simulations=100)

    def open(self, rules: str, name: str) -> dict[str, Any]:
        """Load a game; return its roles, its engine, and whether it has a board. Raise the errors of its rules."""
        loaded = self._game(rules, name)
        game = loaded.game
        return {
            "name": game.name,
            "roles": list(game.roles),
            "engine": game.engine,
            "hash": game.rules_hash,
            "has_board": bool(loaded.boards.boards),
            "options": {option.name: (option.value, option.choices) for option in options(parse(rules).rules).values()},
        }

    def players(self) -> dict[str, Any]:
        """Return all players by name: what each is, its options, and whether it can remember, or always does."""
        listed = {player.name: player for player in list_players()}
        return {
            name: {
                "about": player.about,
                "options": [option for option in player.options if option not in OWN_OPTIONS],
                "remembers": "knowledge" in player.options and name not in STORED,
                "always": name in get_args(LearnerKind),
            }
            for name, player in listed.items()
        }

    def check_player(self, spec: str) -> None:
        """Raise GameloreError if there is no such player, or an option is wrong, or is one that pages may not set.

        A page may not name files: a player of a Python file would run it, and a store could be anywhere.
        """
        named_player(spec, without=OWN_OPTIONS)

    def view(self, rules: str, name: str, plies: Plies, marked: bool = True) -> dict[str, Any]:
        """Return the picture of a position, its legal moves by role, and the clicks that make them.

        Args:
            rules: text of the rules
            name: name of the game
            plies: joint moves since the start
            marked: whether the last move is marked

        Returns:
            `svg`, `is_terminal`, `goals` (role -> goal), `legal` (role -> moves), `clicks` (role -> for each move the
            steps of clicks, each as numbers of places that may be clicked).
        """
        loaded = self._game(rules, name)
        position = loaded.position(plies)
        marks = list(self._last_move(loaded, plies)) if marked and plies else []
        return {
            "svg": loaded.svg(position, marks),
            "is_terminal": position.is_terminal,
            "goals": position.goals,
            "legal": position.legal,
            "clicks": {role: self._clicks(loaded, position, role) for role in loaded.game.roles},
        }

    def choose(
        self,
        rules: str,
        name: str,
        plies: Plies,
        *,
        match: str,
        role: str,
        player: str,
        options: Mapping[str, Any],
        seconds: float,
        startclock: float,
    ) -> str:
        """Return the move of a player; see `SeatedPlayers.choose`."""
        return self._seated(rules, name, player, options).choose(match, role, plies, seconds, startclock)

    def finish(
        self, rules: str, name: str, plies: Plies, *, match: str, role: str, player: str, options: Mapping[str, Any]
    ) -> int | None:
        """Let a player learn from a finished match; see `SeatedPlayers.finish`."""
        return self._seated(rules, name, player, options).finish(match, role, plies)

    def leave(self, rules: str, name: str, *, match: str) -> None:
        """Forget a match whose players are no longer asked."""
        loaded = self._game(rules, name)
        for seated in loaded.players.values():
            for role in loaded.game.roles:
                seated.leave(match, role)
        loaded.players = OrderedDict((key, seated) for key, seated in loaded.players.items() if seated.is_used)

    def think(self, rules: str, name: str, plies: Plies, seconds: float) -> dict[str, Any]:
        """Search on in a position for some seconds; return what the search thinks so far, also as a picture."""
        loaded = self._game(rules, name)
        thought = loaded.opinion(plies).go_on(seconds=seconds)
        return self._thought(loaded, thought)

    def exact(self, rules: str, name: str, plies: Plies) -> dict[str, Any]:
        """Return the exact values of the moves in a position, as `think` does.

        Raise GameloreError if the game cannot be solved, or the match is over.
        """
        loaded = self._game(rules, name)
        position = loaded.position(plies)
        check_goes_on(position)
        try:
            solved = loaded.solved
        except GameloreError as error:
            complaint, _, _ = str(error).partition(";")  # the rest is about the command line
            raise GameloreError(f"{complaint}; let a search think about it instead") from None
        return self._thought(loaded, solved_thought(solved, position))

    def hints(self, rules: str, name: str, plies: Plies, store: str) -> list[dict[str, Any]]:
        """Return good moves in a position with their reasons, the most certain first, see hints.py.

        Args:
            rules: text of the rules
            name: name of the game
            plies: joint moves since the start
            store: file of the knowledge store; it need not exist

        Returns:
            For each hint: `role`, `move`, `kind`, `title`, `reason`, `svg` (the position with the move), and `pictures`
            (what it shows, SVG).
        """
        loaded = self._game(rules, name)
        position = loaded.position(plies)
        check_goes_on(position)
        return [asdict(hint) for hint in loaded.hints.of(position, lambda: loaded.opinion(plies), Path(store))]

    def learned(self, rules: str, name: str, plies: Plies, store: str, learner: int | None = None) -> dict[str, Any]:
        """Return what a learner in a knowledge store has learned about the moves in a position, as `think` does.

        Args:
            rules: text of the rules
            name: name of the game
            plies: joint moves since the start
            store: file of the knowledge store
            learner: number of the learner; None for the one with the most matches

        Returns:
            As `think`, with `learners` (number and text of each that could be asked) and `learner` (the number).
        """
        loaded = self._game(rules, name)
        position = loaded.position(plies)
        check_goes_on(position)
        thought, learners, number = loaded.hints.learned(position, Path(store), learner)
        return self._thought(loaded, thought) | {
            "effort": "learned points, and how often the learner has met the position after the move",
            "learners": [[each.number, learner_text(each)] for each in learners],
            "learner": number,
        }

    def record(self, rules: str, name: str, plies: Plies, *, match: str, players: Sequence[str]) -> str:
        """Return a match as a record in the format of GGP game managers, as JSON text."""
        game = self._game(rules, name).game
        state = MatchState.after(PositionGraph(game), plies, max_plies=len(plies) + 1)
        return state.record(match, players, is_aborted=state.end is None).to_json()

    def replay(self, rules: str, name: str, text: str) -> dict[str, Any]:
        """Read a match record; return its `plies` and `players`. Raise GameloreError if it contradicts the rules."""
        game = self._game(rules, name).game
        record = MatchRecord.from_json(text)
        record.replay(game)
        return {"plies": [list(joint) for joint in record.moves], "players": list(record.players)}

    def _game(self, rules: str, name: str) -> LoadedGame:
        if rules not in self._games:
            with processor_time(self._prepare_seconds):
                _keep(self._games, rules, LoadedGame(rules, name, self._limits), MOST_GAMES)
        self._games.move_to_end(rules)
        return self._games[rules]

    def _seated(self, rules: str, name: str, player: str, options: Mapping[str, Any]) -> SeatedPlayers:
        loaded = self._game(rules, name)
        key = f"{player} {sorted(options.items())}"
        if key not in loaded.players:
            while len(loaded.players) >= MOST_PLAYERS:  # before the next one takes memory
                loaded.players.popitem(last=False)
            loaded.players[key] = SeatedPlayers(loaded.game, player, options)
        loaded.players.move_to_end(key)
        return loaded.players[key]

    def _last_move(self, loaded: LoadedGame, plies: Plies) -> Sequence[Mark]:
        before, after = loaded.position(plies[:-1]), loaded.position(plies)
        return list(move_marks(loaded.boards, before, after, plies[-1]))

    def _clicks(self, loaded: LoadedGame, position: Position, role: str) -> list[list[list[int]]]:
        if not loaded.boards.boards or len(position.legal[role]) < 2:
            return []
        numbers = loaded.numbers
        return [
            [sorted(numbers[place] for place in step) for step in path] for path in loaded.clicks.paths(position, role)
        ]

    def _thought(self, loaded: LoadedGame, thought: Thought) -> dict[str, Any]:
        rows = [
            {"role": role, **asdict(move), "value": move.value}
            for role in thought.moves
            for move in thought.moves[role]
        ]
        return {
            "svg": loaded.svg(thought.position, *thought_signs(loaded.boards, thought)),
            "rows": rows,
            "line": thought.line_text,
            "effort": thought.effort,
            "is_proved": thought.is_proved,
        }


class SolvedThought(Thought):
    """The exact values of the moves of a position, in the form of what a search thinks."""

    @property
    def effort(self) -> str:
        """Where the values come from."""
        return f"exact values; the game has {self.nodes:,} positions"

    def warmth(self, moves: Sequence[MoveThought]) -> list[float]:
        """Return how strongly the place of each move is shaded: by its value."""
        return [move.low / WIN for move in moves]

    def badge(self, move: MoveThought, total: int) -> tuple[str, ...]:
        """Return what stands on the board about a move: its value, and the number of plies to the end."""
        return (move.value,) if move.plies is None else (move.value, f"in {move.plies}")


def solved_thought(solved: Solved, position: Position) -> SolvedThought:
    """Return the exact values of the moves of the role that chooses in a position, the best ones first."""
    rows = solved.moves(position)
    role = rows[0]["role"]
    moves = [
        MoveThought(index, row["move"], 0, float(row[f"goal_{role}"]), *2 * (row[f"goal_{role}"],), _with(row), True)
        for index, row in sorted(enumerate(rows), key=lambda item: (not item[1]["best"], -item[1][f"goal_{role}"]))
        if row["role"] == role
    ]
    return SolvedThought(position, {role: moves}, (), 0, 0.0, solved.num_positions, True)


def _with(row: Mapping[str, Any]) -> int | None:
    """Return the number of plies to the end, with the move itself, as searches count them."""
    return None if row["plies"] is None else int(row["plies"]) + 1


def _places(board: Board) -> list[Place]:
    return [Place(board.function, at) for at in board.spots]


def _keep(kept: OrderedDict[Any, Kept], key: Any, value: Kept, most: int) -> None:
    """Add a value, and forget those that were added first if there are too many."""
    kept[key] = value
    while len(kept) > most:
        kept.popitem(last=False)


def main() -> None:
    """Answer the requests of a pool."""
    answer_requests(RuleWorker)


if __name__ == "__main__":
    main()
