"""OpenSpiel: any compiled game as a game of OpenSpiel, for its search, its solvers and its learners.

The game has the name "gamelore" there, with the parameters `game` (a shipped name or a path) and `max_plies`:

    game = pyspiel.load_game("gamelore(game=connectfour)")      # after `import gamelore.envs.spiel`
    game = gamelore.envs.open_spiel_game("my-game.kif")         # also `Game` objects, and names with options

All positions that were visited, with their moves and successors, are kept, so a second visit costs little.

- Actions are the moves of a role, numbered from 0. A role that waits has no decision; plies without a decision are made
  at once. If roles choose at the same time in some position, the game has the dynamics SIMULTANEOUS, but positions in
  which a single role chooses are its decisions. `pyspiel.convert_to_turn_based` makes a game of turns of it.
- Returns: for two roles whose goals always have the sum 100, goals from 0 to 100 become returns from -1 to 1, and the
  game is ZERO_SUM. Random matches tell whether this holds. Otherwise returns are goals / 100, and the game GENERAL_SUM.
- A match ends after `max_plies` plies, or when a role has no legal move; then all returns are 0.
- Observations are those of `Observation`. Everything is observed, so an information state is the history of actions.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyspiel
from numpy.typing import NDArray

from ..analysis.variables import members
from ..drawing.position import position_text
from ..errors import GameloreError, IllegalMoveError
from ..game.game import Game, Position
from ..matches.match import MAX_PLIES
from ..rulesheets import load, loaded, names
from .batch import GameBatch, action_ranges
from .observation import Observation

NAME = "gamelore"
_DEFAULT = "tictactoe"
_SAMPLE = 1024  # random matches that tell whether goals have the sum 100, and whether roles choose at the same time
_SAMPLE_PLIES = 400
_MOST_NODES = 1_000_000  # positions of a game in memory, about 1 KB each; beyond them it begins anew
_GIVEN: dict[str, Game] = {}
"""Games that were given as objects, or have options, by the name that stands for them in the parameter `game`."""


class _Node:
    """A position as OpenSpiel sees it.

    state    uint64[words], as the game packs it
    key      its bytes
    player   the role that chooses, or SIMULTANEOUS or TERMINAL; INVALID if there is no decision
    legal    for each role the numbers of its moves, ascending
    returns  the results of all roles
    after    actions -> (position after them, number of plies that it takes)
    """

    __slots__ = ("after", "key", "legal", "player", "returns", "state")

    def __init__(
        self, state: NDArray[np.uint64], player: int, legal: tuple[list[int], ...], returns: list[float]
    ) -> None:
        self.state, self.player, self.legal, self.returns = state, player, legal, returns
        self.key = state.tobytes()
        self.after: dict[tuple[int, ...], tuple[_Node, int]] = {}


class _Table:
    """All positions of a game that were visited. Copies of states share it."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.game = game = _GIVEN[source] if source in _GIVEN else load(source)
        self.observation = Observation.of(game)
        assert game.native is not None
        self._native, turns = game.native, game.turn_order
        self._actions = action_ranges(game)
        self.firsts = [own.start for own in self._actions]
        self.num_actions = max(map(len, self._actions))
        self._over = 1 << self._actions[-1].stop
        self._turns = [self._native.fact_number(fact) for fact in turns.controls or ()] if game.num_roles > 1 else []
        self._idle = {action for _, action in turns.idle}
        self.is_simultaneous, self.is_zero_sum = _sampled(game)
        self._nodes: dict[bytes, _Node] = {}
        self.start = self.settled(game.initial)

    def __deepcopy__(self, memo: object) -> _Table:
        return self

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return _table, (self.source,)

    def after(self, node: _Node, actions: tuple[int, ...]) -> tuple[_Node, int]:
        """Return the position after the actions of all roles, and the number of plies.

        A role with one move may also have the action -1. Raise IllegalMoveError for any other action.
        """
        if (after := node.after.get(actions)) is None:
            if len(actions) != len(node.legal):
                raise IllegalMoveError(
                    f"expected {len(node.legal)} actions, one for each role, got {list(actions)}; add those of roles "
                    "that wait, too"
                )
            for role, (action, legal) in enumerate(zip(actions, node.legal, strict=False)):
                if action not in legal and not (action == -1 and len(legal) == 1):
                    raise IllegalMoveError(
                        f"expected one of {legal} for {self.game.roles[role]}, got {action}; take a legal action"
                    )
            settled, plies = self.settled(self._next(node, actions))
            after = node.after[actions] = settled, 1 + plies
        return after

    def settled(self, state: NDArray[np.uint64]) -> tuple[_Node, int]:
        """Return the next position with a decision or an end, and the number of plies to it."""
        node, plies, seen = self.node(state.tobytes()), 0, set()
        while node.player == pyspiel.PlayerId.INVALID:
            if id(node) in seen:
                raise GameloreError(
                    f"expected a decision or an end in {self.game.name}, got plies that repeat for ever"
                )
            seen.add(id(node))
            node = self.node(self._next(node, (-1,) * self.game.num_roles).tobytes())
            plies += 1
        return node, plies

    def _next(self, node: _Node, actions: tuple[int, ...]) -> NDArray[np.uint64]:
        """Return the state after the actions of all roles; -1 is the first legal action."""
        joint = [
            first + (action if action >= 0 else legal[0])
            for first, action, legal in zip(self.firsts, actions, node.legal, strict=False)
        ]
        after: NDArray[np.uint64] = self._native.next(node.state[None], np.array([joint], np.int32))[0]
        return after

    def node(self, key: bytes) -> _Node:
        """Return the position whose packed state has these bytes."""
        if (node := self._nodes.get(key)) is None:
            if len(self._nodes) > _MOST_NODES:
                self._nodes.clear()
                self.start = self.settled(self.game.initial)
            node = self._nodes[key] = self._new_node(np.frombuffer(key, np.uint64))
        return node

    def _new_node(self, state: NDArray[np.uint64]) -> _Node:
        roles, row = range(self.game.num_roles), self._native.rows.ask("legal", state[None])[0]
        bits = int.from_bytes(row.tobytes(), "little")
        legal = tuple(list(members(bits >> own.start & (1 << len(own)) - 1)) for own in self._actions)
        if bits & self._over or not all(legal):
            return _Node(state, int(pyspiel.PlayerId.TERMINAL), tuple([] for _ in roles), self._returns(state, bits))
        choosing = self._choosing(int.from_bytes(state.tobytes(), "little"), legal)
        if len(choosing) > 1 and not self.is_simultaneous:
            raise GameloreError(
                f"expected turns in {self.game.name}, as in all of {_SAMPLE} random matches, got a position in which "
                f"{', '.join(self.game.roles[role] for role in choosing)} choose at the same time; take another library"
            )
        several = pyspiel.PlayerId.SIMULTANEOUS if choosing else pyspiel.PlayerId.INVALID
        player = choosing[0] if len(choosing) == 1 else int(several)
        return _Node(state, player, legal, [0.0] * len(roles))

    def _choosing(self, facts: int, legal: Sequence[list[int]]) -> list[int]:
        """Return the roles that choose, as `Game.acting` tells, and those with several moves."""
        if len(legal) == 1:
            return [0]
        if self._turns:
            has_turn = [number is not None and bool(facts >> number & 1) for number in self._turns]
        else:
            has_turn = [first + own[0] not in self._idle for first, own in zip(self.firsts, legal, strict=False)]
        return [role for role, own in enumerate(legal) if len(own) > 1 or has_turn[role]]

    def _returns(self, state: NDArray[np.uint64], bits: int) -> list[float]:
        if not bits & self._over:
            return [0.0] * self.game.num_roles
        goals = self._native.goals(state[None])[0].tolist()
        if self.is_zero_sum and sum(goals) != 100:
            raise GameloreError(
                f"expected goals with the sum 100 in {self.game.name}, as in all of {_SAMPLE} random matches, got "
                f"{goals}; take another library"
            )
        return [(goal - 50) / 50 if self.is_zero_sum else max(goal, 0) / 100 for goal in goals]


def _sampled(game: Game) -> tuple[bool, bool]:
    """Return whether roles choose at the same time, and whether goals always have the sum 100, in random matches."""
    batch = GameBatch(game, _SAMPLE, observation="facts", max_plies=_SAMPLE_PLIES)
    is_simultaneous, is_zero_sum, num_ended = bool((batch.acting.sum(axis=1) > 1).any()), game.num_roles == 2, 0
    while not batch.is_over.all():
        batch.step(batch.sample())
        is_simultaneous |= bool((batch.acting.sum(axis=1) > 1).any())
        is_zero_sum &= bool((batch.goals[batch.terminated].sum(axis=1) == 100).all())
        num_ended += int(batch.terminated.sum())
    return is_simultaneous, is_zero_sum and num_ended > 0


@lru_cache(maxsize=16)
def _table_of(source: str, changed: int) -> _Table:
    return _Table(source)


def _table(source: str) -> _Table:
    """Return the table of a game by the parameter `game`; a file that has changed gives another table."""
    return _table_of(source, Path(source).stat().st_mtime_ns if Path(source).is_file() else 0)


def _type(table: _Table | None) -> Any:
    """Return the type of a game; that of the registry for None."""
    kinds = pyspiel.GameType
    is_simultaneous = table is not None and table.is_simultaneous
    is_zero_sum = table is None or table.is_zero_sum
    return kinds(
        short_name=NAME,
        long_name="Games in GDL, by gamelore",
        dynamics=kinds.Dynamics.SIMULTANEOUS if is_simultaneous else kinds.Dynamics.SEQUENTIAL,
        chance_mode=kinds.ChanceMode.DETERMINISTIC,
        information=kinds.Information.PERFECT_INFORMATION,
        utility=kinds.Utility.ZERO_SUM if is_zero_sum else kinds.Utility.GENERAL_SUM,
        reward_model=kinds.RewardModel.TERMINAL,
        max_num_players=10 if table is None else table.game.num_roles,
        min_num_players=1 if table is None else table.game.num_roles,
        provides_information_state_string=True,
        provides_information_state_tensor=False,
        provides_observation_string=True,
        provides_observation_tensor=True,
        parameter_specification={"game": _DEFAULT, "max_plies": MAX_PLIES},
    )


class SpielGame(pyspiel.Game):  # type: ignore[misc]
    """A game of OpenSpiel; see the docstring of the module."""

    def __init__(self, params: dict[str, Any] | None = None) -> None:
        """Make a game.

        Args:
            params: `game`, a shipped name or a path; and `max_plies`.
        """
        params = params or {}
        self.table = table = _table(str(params.get("game", _DEFAULT)))
        self.max_plies = int(params.get("max_plies", MAX_PLIES))
        info = pyspiel.GameInfo(
            num_distinct_actions=table.num_actions,
            max_chance_outcomes=0,
            num_players=table.game.num_roles,
            min_utility=-1.0 if table.is_zero_sum else 0.0,
            max_utility=1.0,
            utility_sum=0.0 if table.is_zero_sum else None,
            max_game_length=self.max_plies,
        )
        super().__init__(_type(table), info, params)

    def new_initial_state(self, state: object = None) -> SpielState:
        """Return the first state."""
        return SpielState(self)

    def make_py_observer(self, iig_obs_type: Any = None, params: Any = None) -> _Observer:
        """Return an observer; see OpenSpiel's docs/api_reference.md."""
        return _Observer(self.table, iig_obs_type)


class SpielState(pyspiel.State):  # type: ignore[misc]
    """A state of a SpielGame."""

    def __init__(self, game: SpielGame) -> None:
        super().__init__(game)
        self._table, self._max_plies = game.table, game.max_plies
        node, self._plies = game.table.start
        self._key = node.key

    @property
    def _node(self) -> _Node:
        return self._table.node(self._key)

    @property
    def position(self) -> Position:
        """The position."""
        return Position(self._table.game, self._node.state)

    def at(self, position: Position, plies: int = 0) -> SpielState:
        """Go to another position, without its history; return this state."""
        node, more = self._table.settled(self._table.game.state_of(position))
        self._key, self._plies = node.key, plies + more
        return self

    def current_player(self) -> int:
        """Return the role that chooses, or SIMULTANEOUS or TERMINAL."""
        return pyspiel.PlayerId.TERMINAL if self._plies >= self._max_plies else self._node.player

    def _legal_actions(self, player: int) -> list[int]:
        return self._node.legal[player]

    def _apply_action(self, action: int) -> None:
        node = self._node
        actions = [-1] * len(node.legal)
        actions[node.player] = action
        self._apply_actions(actions)

    def _apply_actions(self, actions: Sequence[int]) -> None:
        node, plies = self._table.after(self._node, tuple(actions))
        self._key = node.key
        self._plies += plies

    def _action_to_string(self, player: int, action: int) -> str:
        return self._table.game.move_text(player, self._table.firsts[player] + action)

    def is_terminal(self) -> bool:
        """Return whether the match is over."""
        return self._plies >= self._max_plies or self._node.player == pyspiel.PlayerId.TERMINAL

    def returns(self) -> list[float]:
        """Return the results of all roles; 0 before the end, and where the match was cut."""
        return self._node.returns

    def __str__(self) -> str:
        return position_text(self.position)


class _Observer:
    """What a state shows to any role: its facts, and the history for perfect recall."""

    def __init__(self, table: _Table, kind: Any) -> None:
        self._table = table
        self._recalls = kind is not None and kind.perfect_recall
        shape = table.observation.shape
        self.tensor: NDArray[np.float32] | None = None if self._recalls else np.zeros(int(np.prod(shape)), np.float32)
        self.dict = {} if self.tensor is None else {"observation": self.tensor.reshape(shape)}

    def set_from(self, state: SpielState, player: int) -> None:
        """Observe a state."""
        if self.tensor is not None:
            self.tensor[:] = self._table.observation.observe(state.position.state[None]).ravel()

    def string_from(self, state: SpielState, player: int) -> str:
        """Return a state as text: its history with perfect recall, else its facts."""
        if self._recalls:
            return f"{player}: {' '.join(map(str, state.history()))}"
        return " ".join(sorted(state.position.facts))


def open_spiel_game(game: Game | str | Path, *, max_plies: int = MAX_PLIES) -> SpielGame:
    """Return a game as a game of OpenSpiel.

    Args:
        game: a game, or what `load` takes; it must be compiled as a whole.
        max_plies: number of plies after which a match is cut, with returns of 0.

    Returns:
        A `pyspiel.Game`. Its string names the game; that of a game that is not shipped holds in this process only.

    Raises:
        GameloreError: the game is not compiled as a whole.
    """
    source = str(game)
    if isinstance(game, Game) or source not in names():
        rules = loaded(game)
        source = f"{rules.name.partition(':')[0]}_{rules.rules_hash[:8]}"
        _GIVEN[source] = rules
    loaded_game: SpielGame = pyspiel.load_game(NAME, {"game": source, "max_plies": max_plies})
    return loaded_game


pyspiel.register_game(_type(None), SpielGame)
