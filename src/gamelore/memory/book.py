"""Book of openings: positions that were searched much longer than a clock allows, and the moves that are best there.

The book grows by *drop-out expansion* (Lincke 2001, Strategies for the automatic construction of opening books): the
next position to search is that with the lowest cost, which is what the moves from the first position to it lose,
compared with the best moves, plus `_COST_OF_PLY` for each ply. So both roles' good moves are searched deep, and poor
moves less deep. When a position has been searched, its value replaces the value that the move to it had in the search
of the position before, and so on up to the first position.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from heapq import heappop, heappush
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import GDLError
from ..learning.store.lesson_rows import OpeningMove
from ..search.choice import MoveReport
from ..search.proofs import first_assumption
from ..search.settings import MAX_PLIES
from ..search.thinking import Search
from ..search.tree import are_opposed

if TYPE_CHECKING:
    from ..game.game import Game

_COST_OF_PLY = 3.0  # points of the goal
_RARE = 0.1  # of the visits of the most visited move; a move with fewer is not made, and not searched further
_KEPT = 0.01  # moves with fewer visits are not stored
_DEEPER = 2  # a position in the book must have been searched by so many times the walks that a player has


class Page(NamedTuple):
    """What the book says about a position in which one role has a choice.

    actions   int32[moves], actions of the role
    visits    int64[moves]
    values    float64[moves], for the role, 0 to 100
    children  the position after each move, as bytes
    """

    role: int
    actions: NDArray[np.int32]
    visits: NDArray[np.int64]
    values: NDArray[np.float64]
    children: tuple[bytes, ...]


class Book:
    """Openings of a game.

    Args:
        game: game with a circuit
        stored: moves from a store, by the facts of their positions; what is not possible in the game is left out
    """

    def __init__(self, game: Game, stored: Mapping[frozenset[str], Iterable[OpeningMove]] | None = None) -> None:
        self.game = game
        self._assumption = first_assumption(game, MAX_PLIES)
        self._pages: dict[bytes, Page] = {}
        self._worths: dict[bytes, float] = {}  # of pages, for their roles; empty after a change
        self._next: NDArray[np.uint64] | None = None  # the position to search next
        self._has_changed = True  # since that was computed
        for facts, moves in (stored or {}).items():
            self._add_stored(facts, list(moves))

    def __len__(self) -> int:
        return len(self._pages)

    def copy(self) -> Book:
        """Return a book that does not grow with this one."""
        copied = Book(self.game)
        copied._pages = dict(self._pages)
        return copied

    @property
    def state(self) -> int:
        """See `state_of_book`."""
        return state_of_book(len(self))

    def _add_stored(self, facts: frozenset[str], moves: list[OpeningMove]) -> None:
        try:
            state = self.game.state(facts)
        except GDLError:
            return
        role, joint = chooser(self.game, state)
        if role is None or any(move.role != role for move in moves):
            return
        texts = [self.game.move_text(role, action).lower() for action in joint[:, role].tolist()]
        own = {move.move.lower(): move for move in moves}
        rows = [(number, own[text].visits, own[text].value) for number, text in enumerate(texts) if text in own]
        self._put(state, role, joint, rows)

    def add(self, state: NDArray[np.uint64], search: Search) -> list[OpeningMove]:
        """Add what a search has found about a position, uint64[words]; return it for the store."""
        role, joint = chooser(self.game, state)
        if role is None:
            return []
        reports = search.moves(role)
        reports = [move for move in reports if not move.is_closed] or reports  # another move is as good, or better
        rows = [(move.index, move.visits, _value(move)) for move in reports if move.visits or move.is_proved]
        most = max((visits for _, visits, _ in rows), default=0)
        best = max((value for _, _, value in rows), default=0.0)
        proved = {move.index for move in reports if move.is_proved}
        # a search ends with a proof, which may come after few visits
        rows = [(index, most if index in proved and value == best else visits, value) for index, visits, value in rows]
        rows = [row for row in rows if row[1] >= _KEPT * most]
        self._put(state, role, joint, rows)
        return [
            OpeningMove(role, self.game.move_text(role, int(joint[number, role])), visits, value)
            for number, visits, value in rows
        ]

    def _put(
        self, state: NDArray[np.uint64], role: int, joint: NDArray[np.int32], rows: list[tuple[int, int, float]]
    ) -> None:
        if not rows:
            return
        self._worths, self._has_changed = {}, True
        numbers, visits, values = (np.array(column) for column in zip(*rows, strict=True))
        after = self.game.next(np.repeat(state[None], len(rows), axis=0), joint[numbers])
        children = tuple(row.tobytes() for row in after)
        self._pages[state.tobytes()] = Page(role, joint[numbers, role], visits, values.astype(np.float64), children)

    def choice(self, state: NDArray[np.uint64], role: int, walks: int) -> int | None:
        """Return the best action of a role in a position; None if a search by so many walks knows more."""
        page = self._pages.get(state.tobytes())
        if page is None or page.role != role or page.visits.sum() < _DEEPER * walks:
            return None
        worth, frequent = self._worth(page), _frequent(page)
        return int(page.actions[frequent[np.lexsort((page.visits[frequent], worth[frequent]))[-1]]])

    @property
    def unsearched(self) -> NDArray[np.uint64] | None:
        """The position to search next, uint64[words]; None if there is no other."""
        if self._has_changed:
            self._next, self._has_changed = self._unsearched(), False
        return self._next

    def _unsearched(self) -> NDArray[np.uint64] | None:
        """Return the position with the lowest cost that has no page."""
        heap = [(0.0, self.game.initial.tobytes())]
        seen = set[bytes]()
        while heap:
            cost, state = heappop(heap)
            if state in seen:
                continue
            seen.add(state)
            page = self._pages.get(state)
            if page is None:
                position = np.frombuffer(state, np.uint64)
                following = self._forced(position)
                if following is None:
                    return position
                children = [(0.0, following.tobytes())] if len(following) else []
            else:
                children = list(self._losses(page))
            for loss, child in children:
                heappush(heap, (cost + loss + _COST_OF_PLY, child))
        return None

    def _forced(self, state: NDArray[np.uint64]) -> NDArray[np.uint64] | None:
        """Return the position after one without a choice, empty after an end; None if one role has a choice.

        Positions in which several roles choose have no place in a book, as if they were ends.
        """
        role, joint = chooser(self.game, state)
        if role is not None:
            return None
        return self.game.next(state[None], joint)[0] if len(joint) == 1 else np.zeros(0, np.uint64)

    def _losses(self, page: Page) -> Iterator[tuple[float, bytes]]:
        """Yield what each frequent move of a page loses, and the position after it."""
        worth, frequent = self._worth(page), _frequent(page)
        best = worth[frequent].max()
        for number in frequent.tolist():
            yield float(best - worth[number]), page.children[number]

    def _worth(self, page: Page) -> NDArray[np.float64]:
        """Return the values of the moves of a page, from those of the positions after them where these are known."""
        worth = page.values.copy()
        for number in _frequent(page).tolist():
            value = self._value(page.children[number], page.role)
            if value is not None:
                worth[number] = value
        return worth

    def _value(self, state: bytes, role: int) -> float | None:
        """Return the value of a position of the book for a role; None if it is not known."""
        page = self._pages.get(state)
        if page is None or (page.role != role and not are_opposed(self._assumption)):
            return None
        if state not in self._worths:
            self._worths[state] = float(page.values[_frequent(page)].max())  # where the match comes back to a position
            self._worths[state] = float(self._worth(page)[_frequent(page)].max())
        return self._worths[state] if page.role == role else self._assumption - self._worths[state]


def state_of_book(num: int) -> int:
    """Return how many times a book of so many positions has doubled its size. Tests hold for a state, see advice.py."""
    return num.bit_length()


def chooser(game: Game, state: NDArray[np.uint64]) -> tuple[int | None, NDArray[np.int32]]:
    """Return the only role that has a choice, and the joint moves, int32[moves, roles].

    The role is None where no role or several roles have a choice. There are no joint moves at an end, and where several
    roles choose.
    """
    legal = game.legal(state[None])
    starts, counts = (column[0] for column in legal.by_role(game.num_roles))
    choosers = np.flatnonzero(counts > 1)
    if not counts.all() or len(choosers) > 1 or bool(game.evaluate(state[None])[0][0]):
        return None, np.zeros((0, game.num_roles), np.int32)
    role = int(choosers[0]) if len(choosers) else None
    num = int(counts.max())
    joint = np.repeat(legal.actions[starts][None], num, axis=0).astype(np.int32)
    if role is not None:
        joint[:, role] = legal.actions[starts[role] : starts[role] + num]
    return role, joint


def _value(move: MoveReport) -> float:
    """Return the value of a move within its proved bounds, 0 to 100."""
    return float(move.low if move.is_proved else min(max(move.value, move.low), move.high))


def _frequent(page: Page) -> NDArray[np.intp]:
    """Return the numbers of the moves that may be made."""
    return np.flatnonzero(page.visits >= _RARE * page.visits.max())
