"""What a move does to the places of a board: where it puts a piece, from where to where it moves one, what it takes.

It is seen by playing. A context says only a part of a state, so it is completed: by the first state and by states of
random matches, each with the facts of the context in the place of its own. The move is played in every such state in
which it is legal, beside random ones of the roles that move at the same time. A change that is the same in all of them
is an effect of the move; where none is (a stone that falls as far as it can, into a column of which nothing is known),
the place that changes most often is told as a guess. Where no such state allows the move, the places that its arguments
name must do: the first is where it goes to, or, if there are more and nothing says that it is blank, where it comes
from; further ones are taken.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import cycle, islice
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from ..errors import GameloreError
from ..play.streams import stream
from ..rules.board import by_function
from .layout import Layout, Place

if TYPE_CHECKING:
    from ..rules.game import Game, Position

Branch: TypeAlias = tuple[tuple[str, str], ...]
"""(role, move), one after the other."""
Change: TypeAlias = tuple[str | None, str]
"""What lay in a place before (None where that differs) and after, "" for nothing or a blank."""

NUM_MATCHES = 6  # at random, whose states complete a context
NUM_STATES = 48  # of those matches, evenly
MAX_PLIES = 40  # of such a match
ENOUGH = 16  # completed states
TRIES = 3  # at random replies between two moves of a solo, at random moves of others in a position


class Effect(NamedTuple):
    """The places that a move touches. `turned`: a piece becomes another; `guess`: one of the places it may go to."""

    placed: tuple[Place, ...] = ()
    moved: tuple[tuple[Place, Place], ...] = ()
    taken: tuple[Place, ...] = ()
    turned: tuple[Place, ...] = ()
    guess: Place | None = None

    def blanks(self, before: set[Place]) -> set[Place]:
        """The places that are known to be blank afterwards."""
        left, reached = {origin for origin, _ in self.moved}, {place for _, place in self.moved}
        return (before | left | set(self.taken)) - reached - {*self.placed, *self.turned, self.guess}


class Effects:
    """The effects of moves in one game."""

    def __init__(self, game: Game, layout: Layout) -> None:
        self.game = game
        self.layout = layout
        self._lies: dict[str, tuple[Place, str] | None] = {}

    def of(self, facts: Iterable[str], branch: Branch, *, solo: bool = False, whole: bool = False) -> list[Effect]:
        """What each move of a sequence does that begins where these facts hold, and no others if they are `whole`.

        solo: between two moves the others reply, in whatever way leaves the next one legal.
        """
        facts = frozenset(facts)
        blank = {place for place, thing in self.layout.lay(facts).things.items() if self._is_blank(place, thing)}
        states = [self.game.position(facts)] * TRIES if whole else list(self._completed(facts, branch[:1]))
        effects = []
        for number, (role, move) in enumerate(branch):
            if solo and number:
                states = list(self._all_replied(states, role, move, number))
            states = [state for state in states if _is_legal(state, role, move)]
            if states and not self._is_acting(states[0], role):
                effects.append(Effect())  # it waits, which is no move
                continue
            after = [self._at_random(state, number, attempt, but={role: move}) for attempt, state in enumerate(states)]
            effect = self._seen(states, after, move) if states else self._named(move, blank)
            blank = effect.blanks(blank)
            effects.append(effect)
            states = after
        return effects

    # ---- states in which a context holds --------------------------------------------------------------------------

    @cached_property
    def _states(self) -> list[frozenset[str]]:
        """The first state, and some of random matches."""
        found = [state for match in range(NUM_MATCHES) for state in self._match(match)]
        return [self.game.start().facts, *(found[i] for i in range(0, len(found), -(-len(found) // NUM_STATES) or 1))]

    def _match(self, match: int) -> Iterator[frozenset[str]]:
        position = self.game.start()
        for ply in range(MAX_PLIES):
            if not _goes_on(position):
                return
            position = self._at_random(position, match, ply)
            yield position.facts

    def _at_random(self, position: Position, *key: int, but: Mapping[str, str] | None = None) -> Position:
        """The position after random moves, but for those that are given."""
        legal = position.legal.items()
        moves = {role: moves[int(stream(0, role, *key)) % len(moves)] for role, moves in legal}
        return position.play(moves | dict(but or {}))

    def _is_acting(self, position: Position, role: str) -> bool:
        return bool(self.game.acting(position.state[None])[0, self.game.roles.index(role)])

    def _completed(self, context: frozenset[str], first: Branch) -> Iterator[Position]:
        """Some states in which the facts of a context hold and a first move is legal."""
        slots = set(map(self._slot, context))
        num_found = 0
        for state in self._states:
            facts = context.union(fact for fact in state if self._slot(fact) not in slots)
            try:
                position = self.game.position(facts)
            except GameloreError:  # these facts never hold together
                continue
            if all(_is_legal(position, role, move) for role, move in first):
                yield position
                num_found += 1
            if num_found == ENOUGH:
                return

    def _slot(self, fact: str) -> object:
        """Facts with the same slot exclude each other: one thing in a place, one number in hand, one player to move."""
        lies = self._lies_in(fact)
        return lies[0] if lies is not None else fact.rpartition(" ")[0] or fact

    def _all_replied(self, states: Sequence[Position], role: str, move: str, number: int) -> Iterator[Position]:
        """At most ENOUGH positions after replies of the others to these, in which move `number` of a role is legal."""
        tries = TRIES * ENOUGH if states else 0
        tried = enumerate(islice(cycle(states), tries))
        return islice(filter(None, (self._replied(state, role, move, number, i) for i, state in tried)), ENOUGH)

    def _replied(self, position: Position, role: str, move: str, *key: int) -> Position | None:
        """The position in which a move of a role is legal, after random replies of the others; none where it is not."""
        for ply in range(self.game.num_roles):
            if _is_legal(position, role, move):
                return position
            if not _goes_on(position) or len(position.legal[role]) > 1:
                return None  # its own turn, and not this move
            position = self._at_random(position, *key, ply)
        return None

    # ---- what changes ---------------------------------------------------------------------------------------------

    def _seen(self, before: Sequence[Position], after: Sequence[Position], move: str) -> Effect:
        changes = [self._changes(one.facts, other.facts) for one, other in zip(before, after, strict=True)]
        common = _common(changes)
        if common:
            return _effect(common, self.layout.named_in(move))
        places = Counter(place for change in changes for place, (_, after) in change.items() if after)
        return Effect(guess=max(places, key=places.__getitem__, default=None))

    def _changes(self, before: frozenset[str], after: frozenset[str]) -> dict[Place, Change]:
        gone, come = self._things(before - after), self._things(after - before)
        changes = {place: (gone.get(place, ""), come.get(place, "")) for place in sorted({*gone, *come})}
        return {place: (was, now) for place, (was, now) in changes.items() if was != now}

    def _things(self, facts: Iterable[str]) -> dict[Place, str]:
        """What lies in places, but for blanks."""
        lying = filter(None, map(self._lies_in, sorted(facts)))
        return {place: "" if self._is_blank(place, thing) else thing or "mark" for place, thing in lying}

    def _is_blank(self, place: Place, thing: str) -> bool:
        return self.layout.board(place).is_blank(thing)

    def _lies_in(self, fact: str) -> tuple[Place, str] | None:
        """The place of a fact, and what it puts there; None for a fact that lies nowhere."""
        if fact not in self._lies:
            ((function, group),) = by_function([fact]).items()
            self._lies[fact] = self.layout.place_of(function, group[fact])
        return self._lies[fact]

    def _named(self, move: str, blank: set[Place]) -> Effect:
        """What the arguments of a move say."""
        named = self.layout.named_in(move)
        if len(named) < 2 or named[0] in blank:
            return Effect(placed=named[:1], taken=named[1:])
        return Effect(moved=((named[0], named[1]),), taken=named[2:])


def _goes_on(position: Position) -> bool:
    return not position.is_terminal and all(position.legal.values())


def _is_legal(position: Position, role: str, move: str) -> bool:
    return _goes_on(position) and move in position.legal[role]


def _common(changes: Sequence[Mapping[Place, Change]]) -> dict[Place, Change]:
    """The changes to the same thing in all states; what was there before only where it is the same."""
    first, *others = changes
    common: dict[Place, Change] = {}
    for place, (before, after) in first.items():
        if all(place in other and other[place][1] == after for other in others):
            same = all(other[place][0] == before for other in others)
            common[place] = (before if same else None, after)
    return common


def _effect(changes: Mapping[Place, Change], named: Sequence[Place]) -> Effect:
    """Reads changes: what vanished here and appeared there has moved; of several such, the first that is named."""
    in_order = sorted(changes, key=lambda place: named.index(place) if place in named else len(named))
    come = [place for place in in_order if changes[place][1]]
    gone = [place for place in in_order if not changes[place][1]]
    moved = []
    for place in list(come):
        origin = next((other for other in gone if changes[other][0] == changes[place][1]), None)
        if origin is not None:
            moved.append((origin, place))
            gone.remove(origin)
            come.remove(place)
    if len(come) == len(gone) == 1 and [*gone, *come] == list(named[:2]):  # and has become something else
        moved, come, gone = [(gone[0], come[0])], [], []
    turned = [place for place in come if changes[place][0]] if len(come) > 1 else []
    placed = [place for place in come if place not in turned]
    return Effect(tuple(placed), tuple(moved), tuple(gone), tuple(turned))
