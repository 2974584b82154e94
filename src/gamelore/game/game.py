"""Game and Position: a game ready to play, in batches of states or position by position; the turn order.

In GDL every role has a move in every state, so the turns are not explicit. `TurnOrder` infers them from random matches.
In most games with turns, a fact such as `(control white)` names the role whose turn it is. Its relation has one
argument. In every state this argument is exactly one role, and no other role has a choice of moves. The name of the
relation does not matter.

If there is no such relation, a role acts if it has several moves, or if its only move is not *idle*. A move is idle if
it was the only move of the role in a state in which another role had a choice.

The random matches have a fixed seed. The reasoner takes at least 1 ms per state, so it plays fewer and shorter matches.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from contextvars import Context
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from ..circuit.playout import PlayoutRunner, Playouts, Rollouts
from ..drawing.position import position_svg, position_text, save_drawing
from ..errors import (
    GameloreError,
    GDLSemanticError,
    GDLSyntaxError,
    GroundingError,
    IllegalMoveError,
    check_seed,
    shortened,
)
from ..gdl import lint
from ..gdl.limits import Limits, check, checked, enforced, within
from ..gdl.syntax import Rulesheet, parse_term
from ..ground.clingo import GroundTerm
from ..ground.optimize import within_bounds
from .compile import bounded_engine, compiled_engine, native_engine
from .engines import BoundedEngine, Engine, Legal, NativeEngine, Promises, ReasonerEngine, States, random_moves

MATCHES_AND_PLIES = 32, 100  # number and maximum length of the random matches for TurnOrder
ON_THE_REASONER = 4, 20
MOST_TEXTS = 1 << 16  # texts of moves and of facts, and terms of texts, that a game keeps
OBSERVED_BYTES = 64 << 20  # for the states of these matches and their numbers of moves; the matches are cut before more


@dataclass(frozen=True)
class TurnOrder:
    """Turn order of a game: decides which roles act in a state.

    controls: for each role the fact that gives it the turn; None if no relation gives the turn.
    idle: the idle moves as pairs (role, action).
    """

    engine: Engine
    controls: tuple[GroundTerm, ...] | None
    idle: frozenset[tuple[int, int]]

    @classmethod
    def observe(cls, engine: Engine) -> TurnOrder:
        """Infer the turn order from random matches."""
        states, counts, idle = _seen_at_random(engine)
        return cls(engine, _controls(engine, states, counts), frozenset(idle))

    def acting(self, states: States) -> NDArray[np.bool_]:
        """Return bool[batch, roles]: whether each role acts in each state."""
        if len(self.engine.roles) == 1:
            return np.ones((len(states), 1), np.bool_)
        if self.controls is not None:
            return np.stack([self.engine.holds(states, fact) for fact in self.controls], axis=1)
        legal = self.engine.legal(states)
        starts, counts = legal.by_role(len(self.engine.roles))
        acting = counts > 1
        for lane, role in np.argwhere(counts == 1).tolist():
            action = int(legal.actions[starts[lane, role]])
            acting[lane, role] = (role, action) not in self.idle
        return acting


def _seen_at_random(engine: Engine) -> tuple[States, NDArray[np.int64], set[tuple[int, int]]]:
    """Play random matches. Return their states, the number of moves of each role in each state, and the idle moves.

    The states are uint64[states, num_words]; the numbers of moves are int64[states, roles].
    """
    matches, plies = MATCHES_AND_PLIES if isinstance(engine, NativeEngine) else ON_THE_REASONER
    rng = np.random.default_rng(0)
    states = np.repeat(engine.initial[None], matches, axis=0)
    seen, num_moves = [states[:1]], [np.zeros((1, len(engine.roles)), np.int64)]
    idle: set[tuple[int, int]] = set()
    for _ in range(min(plies, OBSERVED_BYTES // (8 * matches * (engine.num_words + len(engine.roles))) + 1)):
        check()
        legal = engine.legal(states)
        starts, counts = legal.by_role(len(engine.roles))
        playing = counts.min(axis=1) > 0
        if not playing.any():
            break
        states, starts, counts = states[playing], starts[playing], counts[playing]
        seen.append(states)
        num_moves.append(counts)
        idle |= _idle_moves(legal, starts, counts)
        states = engine.next(states, legal.actions[random_moves(starts, counts, rng)])
    played = slice(1, None) if len(seen) > 1 else slice(None)  # if no move is possible, only the first state
    unique, first = np.unique(np.concatenate(seen[played]), axis=0, return_index=True)
    return unique, np.concatenate(num_moves[played])[first], idle


def _controls(engine: Engine, states: States, counts: NDArray[np.int64]) -> tuple[GroundTerm, ...] | None:
    """Return for each role the fact that gives it the turn; None if no relation gives the turn."""
    for name in sorted(_relations_of_roles(engine, states)):
        candidates = tuple((name, (role,)) for role in engine.roles)
        held = np.stack([engine.holds(states, fact) for fact in candidates], axis=1)
        if (held.sum(axis=1) == 1).all() and not (counts > 1)[~held].any():
            return candidates
    return None


def _relations_of_roles(engine: Engine, states: States) -> set[int]:
    """Return the names of the facts in these states whose only argument is a role; perhaps of other facts, too."""
    roles = set(engine.roles)
    facts = engine.circuit.facts if isinstance(engine, NativeEngine) else chain.from_iterable(map(engine.facts, states))
    names = set()
    for name, arguments in facts:
        check()
        if len(arguments) == 1 and arguments[0] in roles:
            names.add(name)
    return names


def _idle_moves(legal: Legal, starts: NDArray[np.int64], counts: NDArray[np.int64]) -> set[tuple[int, int]]:
    """Return the idle moves, (role, action): the only move of a role in a state where another role has a choice."""
    another_chooses = (counts > 1).any(axis=1, keepdims=True)
    lanes, roles = np.nonzero((counts == 1) & another_chooses)
    return set(zip(roles.tolist(), legal.actions[starts[lanes, roles]].tolist(), strict=True))


EngineName: TypeAlias = Literal["auto", "native", "reasoner"]


class Game:
    """Game that is ready to play: its rules and an engine.

    States are rows of `uint64[batch, num_words]`; only the game interprets them. Actions are integers. Each action
    stands for one move of one role. In the methods, `role` is the index of a role in `roles`, and `states` are states
    of this game; the native engine raises ValueError for arrays of another shape or dtype.

    A pickled game contains the rules, the name, the kind of engine and the limits. When the pickle is loaded, the
    compiled code is read from the cache or made again.

    Attributes:
        rulesheet: the parsed rules.
        name: the name of the game.
        roles: the names of the roles; `num_roles` is their number.
        engine: "native" or "reasoner".
        is_bounded: whether the game is compiled within `base` and `input`, and the reasoner plays outside of them.
        uses_reasoner: whether the reasoner plays the game, or the states outside the bounds, in milliseconds for each.
        engine_reason: the reason why the reasoner plays the game, or the states outside the bounds; "" if the native
            engine plays all states.
        limits: the limits within which the game was loaded; other processes load it within the same.
        circuit: the circuit of the native engine; None if the engine is the reasoner.
        num_words: the number of 64-bit words of a state.
        initial: the first state, uint64[num_words].
        goal_values: for each role its possible goals in ascending order.
    """

    def __init__(
        self,
        sheet: Rulesheet,
        name: str,
        engine: Engine,
        why: str = "",
        limits: Limits | None = None,
        rewrite: bool = True,
    ) -> None:
        self.rulesheet = sheet
        self.name = name
        self.engine: Literal["native", "reasoner"] = "reasoner" if isinstance(engine, ReasonerEngine) else "native"
        self.is_bounded = isinstance(engine, BoundedEngine)
        self.uses_reasoner = isinstance(engine, ReasonerEngine | BoundedEngine)
        self.engine_reason = why
        self.limits = limits or Limits()
        self._rewrite = rewrite
        self._engine = engine
        circuit = self.circuit = None if isinstance(engine, ReasonerEngine) else engine.circuit
        kept = lru_cache(MOST_TEXTS)  # texts come from the network, too
        self._term = term = kept(partial(_ground_term, engine))
        self._action = kept(lambda role, move: engine.action(role, term(move)))
        self._move_text = kept(lambda role, action: engine.names.text(engine.move(role, action)))
        self._fact_text = kept(lambda bit: engine.names.text(circuit.facts[bit]) if circuit else "")
        self.roles = tuple(map(engine.names.text, engine.roles))
        self.num_roles = len(self.roles)
        self.num_words = engine.num_words
        self.initial: NDArray[np.uint64] = engine.initial
        self.goal_values = tuple(map(tuple, engine.goal_values))

    def __repr__(self) -> str:
        return f"<Game {self.name}: roles {shortened(', '.join(self.roles))}; engine {self.engine}>"

    def __reduce__(self) -> tuple[Callable[..., Game], tuple[object, ...]]:
        choice = self.engine, self.is_bounded, self.engine_reason
        return _remake, (self.rulesheet, self.name, *choice, self.limits, self._rewrite)

    @cached_property
    def rules_hash(self) -> str:
        """See `Rulesheet.rules_hash`."""
        return self.rulesheet.rules_hash

    @property
    def native(self) -> NativeEngine | None:
        """The engine, if it is the native engine; for kernels that call its machine code."""
        return self._engine if isinstance(self._engine, NativeEngine) else None

    @cached_property
    def informed_runner(self) -> PlayoutRunner | None:
        """Player of playouts that see wins in one ply; None without a circuit, or if two roles do not take turns."""
        turns, idle = self.turn_order.controls, dict(sorted(self.turn_order.idle))
        if (
            self.native is None
            or self.num_roles != 2
            or turns is None
            or not len(idle) == len(self.turn_order.idle) == 2
        ):
            return None
        return self.native.informed_runner(turns, list(idle.values()))

    def evaluate(self, states: States) -> tuple[NDArray[np.bool_], NDArray[np.int16]]:
        """Return which states are terminal, and the goals of the roles.

        Args:
            states: uint64[batch, num_words].

        Returns:
            terminal: bool[batch], whether the match is over.
            goals: int16[batch, roles], from 0 to 100, also in states that are not terminal; -1 if the rules give the
                role no goal value or several goal values.
        """
        check()
        return self._engine.evaluate(states)

    def terminal(self, states: States) -> NDArray[np.bool_]:
        """Return which states are terminal. This leaves out the goals, up to half of the time of `evaluate`.

        Args:
            states: uint64[batch, num_words].

        Returns:
            bool[batch], whether the match is over.
        """
        check()
        return self._engine.terminal(states)

    def legal(self, states: States) -> Legal:
        """Return the legal moves of every role.

        Args:
            states: uint64[batch, num_words].

        Returns:
            The legal actions of all states in one array, with offsets: see `Legal`. Their order is the same in both
            engines. Terminal states have no moves.
        """
        check()
        return self._engine.legal(states)

    def next(self, states: States, joint: NDArray[np.int32]) -> States:
        """Return the states after joint moves.

        Args:
            states: uint64[batch, num_words], not terminal.
            joint: int32[batch, roles], the action of each role in each state. The actions must be legal; this is not
                checked.

        Returns:
            uint64[batch, num_words].
        """
        check()
        return self._engine.next(states, joint)

    def state_keys(self, states: States) -> NDArray[np.uint64]:
        """Return a hash of the facts of each state.

        Args:
            states: uint64[batch, num_words].

        Returns:
            uint64[batch]. Both engines and all processes give equal hashes.
        """
        return self._engine.keys(states)

    @cached_property
    def turn_order(self) -> TurnOrder:
        return TurnOrder.observe(self._engine)

    def acting(self, states: States) -> NDArray[np.bool_]:
        """Return whether it is the turn of each role.

        The first call plays some random matches to infer the turn order, see `TurnOrder`.

        Args:
            states: uint64[batch, num_words].

        Returns:
            bool[batch, roles]. Where roles move simultaneously, several roles act.
        """
        return self.turn_order.acting(states)

    def holds(self, states: States, fact: str) -> NDArray[np.bool_]:
        """Return whether a fact holds in each state.

        Args:
            states: uint64[batch, num_words].
            fact: a fact such as "(cell 1 1 b)".

        Returns:
            bool[batch]; False for a fact that no state has.

        Raises:
            GDLError: the text is not a term, or it has variables.
        """
        try:
            return self._engine.holds(states, self._term(fact))
        except KeyError:  # a name that the rules do not have
            return np.zeros(len(states), np.bool_)

    def facts(self, state: NDArray[np.uint64]) -> frozenset[str]:
        """Return the facts of one state.

        Args:
            state: uint64[num_words].

        Returns:
            The facts as text, such as "(cell 1 1 b)".
        """
        return frozenset(map(self._engine.names.text, self._engine.facts(state)))

    @cached_property
    def fact_texts(self) -> tuple[str, ...]:
        """The facts of a native state as text, in the order of its bits: fact i is bit i % 64 of word i // 64.

        Raises:
            GameloreError: the game is not compiled.
        """
        if self.circuit is None:
            raise GameloreError(
                f"expected a compiled game, got {self.name}, which is not compiled: {self.engine_reason}"
            )
        return tuple(map(self._engine.names.text, checked(self.circuit.facts)))

    def fact_text(self, bit: int) -> str:
        """Return the fact of a bit of a native state, see `fact_texts`, without the texts of all others."""
        return self._fact_text(bit) if self.circuit else self.fact_texts[bit]

    def state_of(self, position: Position) -> NDArray[np.uint64]:
        """Return the state of a position of this game, which may have been loaded apart.

        Returns:
            uint64[num_words].

        Raises:
            GameloreError: the position is one of another game.
        """
        if position.game is self:
            return position.state
        if position.game.rules_hash != self.rules_hash:
            raise GameloreError(f"expected a position of {self.name}, got one of {position.game.name}")
        return self.state(position.facts)

    def state(self, facts: Iterable[str]) -> NDArray[np.uint64]:
        """Return the state with these facts.

        The reasoner accepts any facts.

        Args:
            facts: all facts of the state as text, such as "(cell 1 1 b)".

        Returns:
            uint64[num_words].

        Raises:
            GDLSyntaxError: a text is not a term.
            GDLSemanticError: a fact has variables. The native engine also raises it if a fact holds in no reachable
                state, if two facts exclude each other, or if the facts that never change are not the same as in the
                first state.
        """
        try:
            terms = [self._term(fact) for fact in facts]
            for error in self._promises.errors(terms, self.name) if self._promises else ():
                raise error
            return self._engine.pack(terms)
        except KeyError as error:
            missing = error.args[0]  # a text with a new name, or a term
            fact = missing if isinstance(missing, str) else self._engine.names.text(missing)
            raise GDLSemanticError(
                f"expected facts that {self.name} can reach, got {fact}",
                remedy="game.facts(state) and position.facts show how facts are written",
            ) from None

    @cached_property
    def _promises(self) -> Promises | None:
        """Properties that every state of the engine must have; None if the engine accepts any state."""
        if self.circuit is None or self.is_bounded:
            return None
        return Promises(self.rulesheet, self._engine.names, self.circuit)

    def move_text(self, role: int, action: int) -> str:
        """Return a move as text.

        Args:
            role: index of the role.
            action: an action of this role, for example from `legal`.

        Returns:
            The move, such as "(mark 2 2)".
        """
        return self._move_text(role, action)

    def action(self, role: int, move: str) -> int:
        """Return the action of a move. The reasoner has an action for every move, legal or not.

        Args:
            role: index of the role.
            move: a move such as "(mark 2 2)".

        Returns:
            The action, at least 0.

        Raises:
            GDLError: the text is not a term, or it has variables.
            IllegalMoveError: the move is never legal. Only the native engine raises this error.
        """
        try:
            return self._action(role, move)
        except KeyError:
            raise IllegalMoveError(
                f"expected a move of {self.roles[role]}, got {move}, which is never legal in {self.name}; "
                "position.legal has the legal moves"
            ) from None

    def playouts(
        self, n: int, seed: int = 0, *, threads: int | None = None, progress: Callable[[int], None] | None = None
    ) -> Playouts:
        """Play exactly n uniformly random matches from the first state, each to its end.

        This function does not return if a match never ends.

        Args:
            n: the number of matches, at least 0.
            seed: the seed of the random moves, at least 0. Equal seeds give equal results on each engine.
            threads: the number of threads; None for one thread on each core. The result does not depend on it. The
                reasoner uses one thread.
            progress: a function that is called from time to time with the number of finished matches.

        Returns:
            Totals: the number of matches with each goal value for each role, the number of joint moves, and the number
            of matches that got stuck. See `Playouts`.

        Raises:
            GameloreError: n or the seed is negative, or threads is less than 1.
        """
        if n < 0:
            raise GameloreError(f"expected a number of playouts of at least 0, got {n}")
        check_seed(seed)
        return self._engine.playouts(n, seed, _some_threads(threads), progress)

    def rollouts(
        self, states: States, seed: int = 0, *, threads: int | None = None, max_steps: int | None = None
    ) -> Rollouts:
        """Play one uniformly random match from each state.

        Args:
            states: the states to start from, uint64[n, num_words]. A state may occur several times.
            seed: the seed of the random moves, at least 0.
            threads: as in `playouts`.
            max_steps: the maximum number of joint moves of a match; None for no limit. A match that has not ended by
                then is cut and has no goals.

        Returns:
            For each state the goals of its match, int16[n, roles], and the number of joint moves, int32[n]. A goal is
            -1 if the rules give no goal value or several, and if the match got stuck or was cut. See `Rollouts`.

        Raises:
            GameloreError: the seed is negative, or threads or max_steps is less than 1.
        """
        if max_steps is not None and max_steps < 1:
            raise GameloreError(f"expected max_steps of at least 1, got {max_steps}; leave it out for no limit")
        check_seed(seed)
        return self._engine.rollouts(states, seed, _some_threads(threads), max_steps or 0)

    @cached_property
    def numbering(self) -> str:
        """A hash of the rules and of the numbers of facts and actions: where it is equal, states mean the same.

        Raises:
            GameloreError: the game is not compiled as a whole, so that states are numbers of this process.
        """
        if self.circuit is None or self.is_bounded:
            raise GameloreError(
                f"expected a game that is compiled as a whole, got {self.name}, whose states are numbers that other "
                "processes do not know; compute the result again there"
            )
        numbers = repr((self.circuit.facts, self.circuit.actions))
        return blake2b(f"{self.rules_hash} {numbers}".encode(), digest_size=16).hexdigest()

    def start(self) -> Position:
        """Return the first position."""
        return Position(self, self.initial)

    def position(self, facts: Iterable[str]) -> Position:
        """Return the position in which exactly these facts hold.

        Args:
            facts: the facts as text; see `state`.

        Returns:
            The position. Only `state` checks whether it can be reached.

        Raises:
            GDLSyntaxError, GDLSemanticError: see `state`.
        """
        return Position(self, self.state(facts))


def _ground_term(engine: Engine, text: str) -> GroundTerm:
    """Return a text as a numbered term. For a game that is compiled as a whole, raise KeyError(text) for new names.

    Such a term is no fact and no move, and each new name would take memory for ever.
    """
    term = parse_term(text)
    if isinstance(engine, NativeEngine) and not engine.names.has_names_of(term):
        raise KeyError(text)
    return engine.names.ground_term(term)


def _some_threads(threads: int | None) -> int | None:
    """Return the number of threads unchanged. Raises GameloreError if it is less than 1."""
    if threads is not None and threads < 1:
        raise GameloreError(f"expected at least one thread, got {threads}; leave it out for one thread on each core")
    return threads


@dataclass(frozen=True, eq=False)
class Position:
    """One position of a game, with facts and moves as text.

    Two positions are equal if the same facts hold and their games have the same rules. A pickled position contains the
    game and the facts. Positions never change: `play` returns a new one. `print` draws a position as text, notebooks
    draw it as a picture.

    Attributes:
        game: the game.
        state: the facts as uint64[game.num_words], for the methods of `Game`.
    """

    game: Game
    state: NDArray[np.uint64]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Position):
            return False
        if other.game is self.game:
            return np.array_equal(other.state, self.state)
        return other.game.rules_hash == self.game.rules_hash and other._folded_facts == self._folded_facts

    def __hash__(self) -> int:
        return int(self.game.state_keys(self.state[None])[0])

    def __reduce__(self) -> tuple[Callable[..., Position], tuple[object, ...]]:
        return _remake_position, (self.game, sorted(self.facts))

    def __repr__(self) -> str:
        return f"<Position of {self.game.name}: {' '.join(sorted(self.facts))}>"

    def __str__(self) -> str:
        """Return the boards as text, and the facts that are on no board."""
        return position_text(self)

    def _repr_svg_(self) -> str:
        """Return the picture that notebooks show."""
        return position_svg(self)

    @cached_property
    def facts(self) -> frozenset[str]:
        """The facts that hold, such as "(cell 1 1 b)"."""
        return self.game.facts(self.state)

    @property
    def _folded_facts(self) -> set[str]:
        """The facts in lower case: sheets with equal hashes may spell them differently."""
        return {fact.lower() for fact in self.facts}

    @cached_property
    def legal(self) -> dict[str, list[str]]:
        """Role -> its legal moves, in a fixed order; empty lists in a terminal position."""
        text = self.game.move_text
        return {
            name: [text(role, action) for action in self._actions(role).tolist()]
            for role, name in enumerate(self.game.roles)
        }

    @cached_property
    def _legal(self) -> Legal:
        return self.game.legal(self.state[None])

    def _actions(self, role: int) -> NDArray[np.int32]:
        """Return the legal actions of a role, int32."""
        offsets = self._legal.offsets
        return self._legal.actions[offsets[role] : offsets[role + 1]]

    @property
    def is_terminal(self) -> bool:
        """Whether the match is over."""
        return bool(self._legal.terminal[0])

    @cached_property
    def goals(self) -> dict[str, int | None]:
        """Role -> its goal value, 0 to 100; None if the rules give no goal value or several goal values.

        Many games give goal values also in positions that are not terminal.
        """
        _, goals = self.game.evaluate(self.state[None])
        values = (goal if goal >= 0 else None for goal in goals[0].tolist())
        return dict(zip(self.game.roles, values, strict=True))

    def play(self, moves: Mapping[str, str] | Sequence[str] | str) -> Position:
        """Return the position after a joint move.

        Args:
            moves: a mapping role -> move; or the moves in the order of roles; or the move of the only role as text.

        Returns:
            The new position.

        Raises:
            IllegalMoveError: the match is over, a move is missing, there are too many moves, or a move is not legal.
                The message names the legal moves.
        """
        if isinstance(moves, str):
            moves = (moves,)
        moves = self._by_role(moves)
        joint = [self._action(role, moves[name]) for role, name in enumerate(self.game.roles)]
        return Position(self.game, self.game.next(self.state[None], np.array([joint], np.int32))[0])

    def save(self, path: str | Path) -> None:
        """Draw the position into a file.

        Args:
            path: a file that ends in .svg, for a picture, or in .txt, for text.

        Raises:
            GameloreError: the file ends otherwise.
        """
        save_drawing(Path(path), lambda: position_text(self), lambda: position_svg(self))

    def _by_role(self, moves: Mapping[str, str] | Sequence[str]) -> Mapping[str, str]:
        """Return role -> move. Raises IllegalMoveError if the match is over, or if some role does not have one move."""
        roles = self.game.roles
        if not isinstance(moves, Mapping):
            if not isinstance(moves, Collection) or isinstance(moves, Set):
                raise IllegalMoveError(
                    f"expected the moves of {', '.join(roles)} as a list or as a mapping role -> move, got {moves!r}; "
                    "give one move of each role, as text"
                )
            if len(moves) != len(roles):
                waiting = "; a role that waits has one legal move, often noop" if len(moves) < len(roles) else ""
                raise IllegalMoveError(
                    f"expected {len(roles)} moves, one for each of {', '.join(roles)}, got {len(moves)}{waiting}"
                )
            moves = dict(zip(roles, moves, strict=True))
        if self.is_terminal:
            raise IllegalMoveError("the match is over: a terminal position has no legal moves; begin with game.start()")
        if unknown := sorted(map(str, set(moves) - set(roles))):
            raise IllegalMoveError(f"expected moves of {', '.join(roles)} only, got a move of {', '.join(unknown)}")
        for role, name in enumerate(roles):
            if name not in moves:
                raise IllegalMoveError(f"expected a move of every role, got no move of {name}; {self._choice(role)}")
        return moves

    def _action(self, role: int, move: str) -> int:
        """Return the action of a legal move. Raises IllegalMoveError for any other move."""
        name = self.game.roles[role]
        if not isinstance(move, str):
            raise IllegalMoveError(f"expected a move of {name} as text, got {move!r}; {self._choice(role)}")
        try:
            action = self.game.action(role, move)
            if (self._actions(role) == action).any():
                return action
        except (GDLSyntaxError, GDLSemanticError, IllegalMoveError):
            pass  # the text is not a term, or the move is never legal
        raise IllegalMoveError(f"expected a legal move of {name}, got {move}; {self._choice(role)}")

    def _choice(self, role: int) -> str:
        """Return the legal moves of a role, for error messages."""
        legal = self.legal[self.game.roles[role]]
        return f"legal moves: {', '.join(legal) or 'none, so the match cannot go on'}"


def make(
    sheet: Rulesheet, name: str, engine: EngineName = "auto", limits: Limits | None = None, rewrite: bool = True
) -> Game:
    """Make the game of a rulesheet.

    Args:
        sheet: the rules.
        name: the name of the game.
        engine: "native" compiles the game; a game that is too large is compiled within `base` and `input`. "reasoner"
            asks clingo about each state. "auto" is "native" if the game is within the limits, else "reasoner".
        limits: the limits of loading; all attempts together get so much.
        rewrite: False to use the rules exactly as written. This is slow; tests use it as the reference.

    Returns:
        The game. `engine` is its engine, and `engine_reason` says why it is not compiled.

    Raises:
        GDLSemanticError: the rulesheet cannot be played.
        GroundingError: the game exceeds the limits. With the engine "auto", no engine can play it within the limits.
        GameloreError: the engine is not one of the three.
    """
    if engine not in get_args(EngineName):
        engines = ", ".join(get_args(EngineName))
        raise GameloreError(f"expected one of the engines {engines}, got '{engine}'; choose one of these")
    limits = limits or Limits()
    return enforced(partial(_made, sheet, name, engine, limits, rewrite), limits)


def _made(sheet: Rulesheet, name: str, engine: EngineName, limits: Limits, rewrite: bool) -> Game:
    """Make a game within the present budget; see `make`."""
    lint.refuse(sheet)
    why = "the engine reasoner was chosen"
    if engine != "reasoner":
        try:
            return Game(sheet, name, *compiled_engine(sheet, limits, rewrite), limits, rewrite)
        except GroundingError as error:
            if engine == "native":
                raise
            why = error.message
    try:
        reasoner = ReasonerEngine(sheet, limits, rewrite)
        reasoner.try_first_ply()
        return Game(sheet, name, reasoner, why, limits, rewrite)
    except GroundingError as error:
        reason = error.message if engine == "reasoner" else _joined(why, error.message)
        endless = Context().run(_endless, sheet, limits)  # outside of the budget, which is used up
        raise GroundingError(f"{reason}{endless}", "simplify these rules, or raise the limit") from error


def _joined(compiling: str, reasoner: str) -> str:
    """Return the reasons why a game could not be compiled and why the reasoner cannot play it; equal limits once."""
    is_same = compiling.partition(";")[0] == reasoner.partition(";")[0]
    return compiling if is_same else f"{compiling}; on the reasoner: {reasoner}"


FOR_THE_REASON = 0.1  # part of the limits, after these are used up, for finding out why


def _endless(sheet: Rulesheet, limits: Limits) -> str:
    """Return a text about the first recursive rule that may build terms without end; "" if there is none."""
    try:
        with within(limits.share(FOR_THE_REASON)):
            finding = next(iter(lint.findings_of(sheet, "unlimited-recursion")), None)
    except GroundingError:
        return ""
    return f"; line {finding.line}: {finding.message}" if finding else ""


def _remake(
    sheet: Rulesheet, name: str, engine: str, is_bounded: bool, why: str, limits: Limits, rewrite: bool
) -> Game:
    """Make a pickled game again, with the same kind of engine.

    The pickle contains the rules, not the machine code. So `pickle.loads` grounds and compiles the rules again if the
    cache of this machine does not have the game. No time limit applies, because this machine may be slower than the
    first, and the engine must be the same: unpickling may take longer than `load` and its limit. The limit of ground
    literals still applies; it was met before. If a process needs a limit of time, send it the rules and `load` them
    there. Raises GroundingError if another version of gamelore grounds the rules to more literals.
    """
    again: Engine
    unhurried = replace(limits, seconds=math.inf)
    if engine == "reasoner":
        again = ReasonerEngine(sheet, limits, rewrite)
    elif is_bounded:
        again = bounded_engine(sheet, within_bounds(sheet), unhurried, rewrite)
    else:
        again = native_engine(sheet, sheet, unhurried, rewrite)
    return Game(sheet, name, again, why, limits, rewrite)


def _remake_position(game: Game, facts: Sequence[str]) -> Position:
    return Position(game, game._engine.pack(map(game._term, facts)))
