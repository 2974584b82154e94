"""Game: what everybody else sees of a rulesheet. Batches of states in, batches out; or one friendly Position."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from ..errors import GameloreError, GDLSemanticError, GDLSyntaxError, GroundingError, IllegalMoveError
from . import cache, check
from .asp import Limits
from .bounded import BoundedEngine
from .bounds import within_bounds
from .circuit import Circuit
from .engine import Engine, Legal, NativeEngine, ReasonerEngine, States
from .gdl import Rulesheet, parse, parse_term
from .ground import GroundProgram, ground
from .names import GroundTerm, Names
from .playout import Playouts, Rollouts
from .promises import Promises
from .rewrite import rewrite as rewritten
from .tape import record_circuit
from .translate import build
from .turns import Turns

EngineName: TypeAlias = Literal["auto", "native", "reasoner"]
WITHIN_BOUNDS = 0.5  # of the seconds for grounding are for another try, within `base` and `input`


class Game:
    """The rules of a game, ready to be played.

    States are `uint64[batch, num_words]`; only the game reads them. Actions are integers of one role's moves in this
    game. `engine_reason` says why the reasoner plays, where it does, all of the game or what is outside of `base` and
    `input` (then the game `is_bounded`); `circuit` is what the native engine runs.
    """

    def __init__(
        self, sheet: Rulesheet, name: str, engine: NativeEngine | BoundedEngine | ReasonerEngine, why: str = ""
    ) -> None:
        self.rulesheet = sheet
        self.name = name
        self.engine: Literal["native", "reasoner"] = "reasoner" if isinstance(engine, ReasonerEngine) else "native"
        self.is_bounded = isinstance(engine, BoundedEngine)
        self.engine_reason = why
        self._engine: Engine = engine
        self.circuit: Circuit | None = None if isinstance(engine, ReasonerEngine) else engine.circuit
        self._terms: dict[str, GroundTerm] = {}
        self._actions: dict[tuple[int, str], int] = {}
        self._texts: dict[tuple[int, int], str] = {}
        self.roles = tuple(map(engine.names.text, engine.roles))
        self.num_roles = len(self.roles)
        self.num_words = engine.num_words
        self.initial: NDArray[np.uint64] = engine.initial
        self.goal_values = tuple(map(tuple, engine.goal_values))

    def __repr__(self) -> str:
        return f"<Game {self.name}: roles {', '.join(self.roles)}; engine {self.engine}>"

    @cached_property
    def rules_hash(self) -> str:
        """SHA-256 of the rules in canonical form, in hexadecimal; comments and white space do not change it."""
        return hashlib.sha256(str(self.rulesheet).lower().encode()).hexdigest()

    def evaluate(self, states: States) -> tuple[NDArray[np.bool_], NDArray[np.int16]]:
        """terminal bool[batch], and goals int16[batch, roles], -1 where the rules give none or several."""
        return self._engine.evaluate(states)

    def legal(self, states: States) -> Legal:
        """The legal moves of every role, in the order of actions; none in terminal states."""
        return self._engine.legal(states)

    def next(self, states: States, joint: NDArray[np.int32]) -> States:
        """Successors for joint moves int32[batch, roles] of action indices; legality is not looked at."""
        return self._engine.next(states, joint)

    def state_keys(self, states: States) -> NDArray[np.uint64]:
        """uint64[batch]: a hash of the facts, the same on both engines and in every process."""
        return self._engine.keys(states)

    @cached_property
    def _turns(self) -> Turns:
        return Turns.observe(self._engine)

    def acting(self, states: States) -> NDArray[np.bool_]:
        """bool[batch, roles]: whose turn it is; see turns.py."""
        return self._turns.acting(states)

    def holds(self, states: States, fact: str) -> NDArray[np.bool_]:
        """bool[batch]: in which states a fact holds."""
        return self._engine.holds(states, self._term(fact))

    def _term(self, text: str) -> GroundTerm:
        """A fact or a move as the engine knows it; parsed once."""
        if text not in self._terms:
            self._terms[text] = self._engine.names.ground_term(parse_term(text))
        return self._terms[text]

    def facts(self, state: NDArray[np.uint64]) -> frozenset[str]:
        """The facts of one state, uint64[num_words], as text."""
        return frozenset(map(self._engine.names.text, self._engine.facts(state)))

    def fact_text(self, bit: int) -> str:
        """The fact of a bit of the native engine's states: bit i % 64 of word i // 64 is number i."""
        if self.circuit is None:
            raise GameloreError(f"expected a game that is compiled, got {self.name}: {self.engine_reason}")
        return self._engine.names.text(self.circuit.facts[bit])

    def state(self, facts: Iterable[str]) -> NDArray[np.uint64]:
        """Packs facts, uint64[num_words].

        Raises GDLSemanticError (a ValueError) for one with variables and, on the native engine, for one that no
        reachable state holds, where facts that never change are others than at the start, and for two facts of which
        the rules never let both hold, where the circuit relies on that; the reasoner takes any.
        """
        terms = [self._term(fact) for fact in facts]
        if self._promises:
            self._promises.refuse_broken(terms, self.name)
        try:
            return self._engine.pack(terms)
        except KeyError as error:
            fact = self._engine.names.text(error.args[0])
            raise GDLSemanticError(
                f"expected facts that {self.name} can reach, got {fact}",
                remedy="see game.facts(state) and position.facts for how they are written",
            ) from None

    @cached_property
    def _promises(self) -> Promises | None:
        """What the engine takes for granted of a state; None where it answers for any."""
        if self.circuit is None or self.is_bounded:
            return None
        return Promises(self.rulesheet, self._engine.names, self.circuit)

    def move_text(self, role: int, action: int) -> str:
        """A move as text: `(mark 2 2)`."""
        text = self._texts.get((role, action))
        if text is None:
            text = self._texts[role, action] = self._engine.names.text(self._engine.move(role, action))
        return text

    def action(self, role: int, move: str) -> int:
        """The index of a move given as text.

        Raises IllegalMoveError for one that is never legal; the reasoner cannot know, and gives any move an index.
        """
        action = self._actions.get((role, move))
        if action is None:
            try:
                action = self._actions[role, move] = self._engine.action(role, self._term(move))
            except KeyError:
                raise IllegalMoveError(
                    f"expected a move of {self.roles[role]}, got {move}, which is never legal in {self.name}; "
                    "see position.legal for those that are"
                ) from None
        return action

    def playouts(
        self, n: int, seed: int = 0, *, threads: int | None = None, progress: Callable[[int], None] | None = None
    ) -> Playouts:
        """Exactly n uniformly random matches from the start; `progress` is told now and then how many are done.

        threads: None for one on each core; the native engine's result does not depend on it, and the reasoner uses
        one. All matches are played to their end: in a game that need not end, neither need this. Raises GameloreError
        for a negative n or no thread.
        """
        if n < 0:
            raise GameloreError(f"expected a number of playouts, got {n}; ask for 0 or more")
        return self._engine.playouts(n, seed, _some_threads(threads), progress)

    def rollouts(
        self, states: States, seed: int = 0, *, threads: int | None = None, max_steps: int | None = None
    ) -> Rollouts:
        """One uniformly random match from each of the states uint64[n, num_words], which need not differ.

        A match that goes on after max_steps joint moves is cut, and has no goals. threads: see `playouts`. Raises
        GameloreError for no thread or a negative number of steps.
        """
        if max_steps is not None and max_steps < 1:
            raise GameloreError(f"expected at least one step, got max_steps = {max_steps}; leave it out for no limit")
        return self._engine.rollouts(states, seed, _some_threads(threads), max_steps or 0)

    def start(self) -> Position:
        """The first position."""
        return Position(self, self.initial)

    def position(self, facts: Iterable[str]) -> Position:
        """The position in which exactly these facts hold."""
        return Position(self, self.state(facts))


def _some_threads(threads: int | None) -> int | None:
    if threads is not None and threads < 1:
        raise GameloreError(f"expected at least one thread, got {threads}; leave it out for one on each core")
    return threads


@dataclass(frozen=True, eq=False)
class Position:
    """One position of a game, with everything as text."""

    game: Game
    state: NDArray[np.uint64]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Position) and other.game is self.game and np.array_equal(other.state, self.state)

    def __hash__(self) -> int:
        return hash(self.state.tobytes())

    def __repr__(self) -> str:
        return f"<Position of {self.game.name}: {' '.join(sorted(self.facts))}>"

    @cached_property
    def facts(self) -> frozenset[str]:
        """The facts that hold: "(cell 1 1 b)"."""
        return self.game.facts(self.state)

    @cached_property
    def legal(self) -> dict[str, list[str]]:
        """Role -> its legal moves in the order of actions; empty lists in a terminal position."""
        text = self.game.move_text
        return {
            name: [text(role, action) for action in self._actions(role).tolist()]
            for role, name in enumerate(self.game.roles)
        }

    @cached_property
    def _legal(self) -> Legal:
        return self.game.legal(self.state[None])

    def _actions(self, role: int) -> NDArray[np.int32]:
        """The legal actions of a role, int32."""
        offsets = self._legal.offsets
        return self._legal.actions[offsets[role] : offsets[role + 1]]

    @property
    def is_terminal(self) -> bool:
        """Whether the match is over."""
        return bool(self._legal.terminal[0])

    @cached_property
    def goals(self) -> dict[str, int | None]:
        """Role -> its goal value; None where the rules give none, or several."""
        _, goals = self.game.evaluate(self.state[None])
        return {
            role: goal if goal >= 0 else None for role, goal in zip(self.game.roles, goals[0].tolist(), strict=True)
        }

    def play(self, moves: Mapping[str, str] | Sequence[str] | str) -> Position:
        """The position after a joint move: role -> move, moves in the order of roles, or the move of a single player.

        Raises IllegalMoveError, naming the legal moves.
        """
        if isinstance(moves, str):
            moves = (moves,)
        if not isinstance(moves, Mapping):
            moves = self._by_role(moves)
        self._check_roles(moves)
        joint = [self._action(role, moves[name]) for role, name in enumerate(self.game.roles)]
        return Position(self.game, self.game.next(self.state[None], np.array([joint], np.int32))[0])

    def _by_role(self, moves: Sequence[str]) -> dict[str, str]:
        if len(moves) != self.game.num_roles:
            raise IllegalMoveError(
                f"expected {self.game.num_roles} moves, one for each of {', '.join(self.game.roles)}, got {len(moves)}"
            )
        return dict(zip(self.game.roles, moves, strict=True))

    def _check_roles(self, moves: Mapping[str, str]) -> None:
        """Raises IllegalMoveError where moves are not those of the roles, or there are none."""
        if self.is_terminal:
            raise IllegalMoveError("the match is over: a terminal position has no legal moves; begin with game.start()")
        for role, name in enumerate(self.game.roles):
            if name not in moves:
                raise IllegalMoveError(f"expected a move of every role, got none of {name}; {self._choice(role)}")
        if len(moves) > self.game.num_roles:
            roles, unknown = ", ".join(self.game.roles), ", ".join(sorted(set(moves) - set(self.game.roles)))
            raise IllegalMoveError(f"expected moves of {roles}, got one of {unknown}")

    def _action(self, role: int, move: str) -> int:
        """The action of a legal move."""
        try:
            action = self.game.action(role, move)
            if (self._actions(role) == action).any():
                return action
        except (GDLSyntaxError, GDLSemanticError, IllegalMoveError):
            pass  # no term, or none that is ever a move
        name = self.game.roles[role]
        raise IllegalMoveError(f"expected a legal move of {name}, got {move}; {self._choice(role)}")

    def _choice(self, role: int) -> str:
        legal = self.legal[self.game.roles[role]]
        return f"legal: {', '.join(legal) or 'none, the match is stuck here'}"


def make(
    sheet: Rulesheet, name: str, engine: EngineName = "auto", limits: Limits | None = None, rewrite: bool = True
) -> Game:
    """The game of a rulesheet.

    engine: "native" compiles, within `base` and `input` where else it is over the limits, and raises GroundingError
    where that is, too; "reasoner" asks the rules each time; "auto" is native where the limits allow it. rewrite: False
    to take the rules as they are written, which is slow, and the oracle that everything else is held against. Raises
    GDLSemanticError for a rulesheet that cannot be played, GameloreError for another engine.
    """
    if engine not in get_args(EngineName):
        known = ", ".join(get_args(EngineName))
        raise GameloreError(f"expected one of the engines {known}, got '{engine}'; choose one of them")
    check.refuse(sheet)
    why = "asked for"
    if engine != "reasoner":
        try:
            return Game(sheet, name, *_compiled(sheet, limits or Limits(), rewrite))
        except GroundingError as error:
            if engine == "native":
                raise
            why = str(error)
    return Game(sheet, name, ReasonerEngine(sheet, limits, rewrite), why)


def findings(text: str, path: Path | None = None, limits: Limits | None = None) -> list[check.Finding]:
    """All that `check_text` sees, and more where negation stands in a cycle between relations.

    That is a warning, for many such sheets have a perfect model. So they are grounded, and where the cycle is one of
    ground atoms, too, the warning becomes an error. Over the limits, or where loading refuses the sheet anyhow, it
    stays a warning.
    """
    found = check.check_text(text, path)
    codes = {finding.code for finding in found}
    if "negation-in-cycle" not in codes or not codes.isdisjoint(check.REFUSED):
        return found
    sheet = parse(text, path)
    try:
        program = ground(sheet, limits)
    except (GroundingError, GDLSemanticError):
        return found
    try:
        _circuit(sheet, program)
    except GDLSemanticError as error:
        lasting = [finding for finding in found if finding.code != "negation-in-cycle"]
        place = (sheet.path, error.line, error.column, error.rule, error.remedy)
        found = [*lasting, check.Finding("error", "no-perfect-model", error.message, *place)]
    return sorted(found, key=lambda finding: (finding.line, finding.column))


def _circuit(sheet: Rulesheet, program: GroundProgram) -> Circuit:
    try:
        return build(program)
    except GDLSemanticError as error:
        raise check.placed(error, sheet, "negation-in-cycle") from None


def _compiled(sheet: Rulesheet, limits: Limits, rewrite: bool) -> tuple[NativeEngine | BoundedEngine, str]:
    """The native engine, within the bounds that the sheet declares where it is too large without; and why."""
    try:
        return _native(sheet, sheet, limits, rewrite), ""
    except GroundingError as error:
        refused = GroundingError(str(error))  # without its traceback, which holds all that was ground
    inside = within_bounds(sheet)
    if inside is None:
        raise refused
    try:
        native = _native(inside, sheet, replace(limits, seconds=WITHIN_BOUNDS * limits.seconds), rewrite)
    except GroundingError:
        raise refused from None
    too_large, _, _ = str(refused).partition(". Remedy:")
    why = f"within `base` and `input`, with the reasoner for what is outside, for without them: {too_large}"
    reasoner = partial(ReasonerEngine, sheet, limits, rewrite, native.names)
    return BoundedEngine(sheet, native, reasoner), why


def _native(rules: Rulesheet, sheet: Rulesheet, limits: Limits, rewrite: bool) -> NativeEngine:
    """The native engine of some rules, which are those of the sheet or made of them."""
    key = cache.key(rules, limits.literals, rewrite)
    known = cache.load(key)
    if known is not None:
        return NativeEngine(Names(rules), *known)
    refused = cache.refusal(key, limits.seconds)
    if refused is not None:
        raise GroundingError(refused)
    try:
        program = ground(rewritten(rules) if rewrite else rules, limits, Names(rules))
        circuit = _circuit(sheet, program)
    except GroundingError as error:
        cache.refuse(key, limits.seconds, str(error))
        raise
    tapes = record_circuit(circuit)
    cache.store(key, program.roles, circuit, tapes)
    return NativeEngine(program.names, program.roles, circuit, tapes)
