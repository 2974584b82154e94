"""What a knowledge store holds, row by row, as whoever reads and writes it has it; `knowledge` tells what it means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

DEPTH = 2  # of features, unless a learner's settings say another; B&S 2007, section 3
ALL_ROLES = "all roles"  # in the place of a role; with its space it is none of GDL's
IDENTITY = ("game", "rules_hash", "role", "opponent", "settings", "seed")


class KnownGame(Protocol):
    """The part of a `Game` that the store keeps; `rulesheet` prints as GDL."""

    @property
    def name(self) -> str: ...
    @property
    def roles(self) -> tuple[str, ...]: ...
    @property
    def rules_hash(self) -> str: ...
    @property
    def goal_values(self) -> tuple[tuple[int, ...], ...]: ...
    @property
    def rulesheet(self) -> object: ...


class MatchRow(NamedTuple):
    """A finished match: the learner's reward (of a learner of sequences: its expert's), its length in joint moves."""

    reward: float
    length: int


class GameRow(NamedTuple):
    """A game of the store; `rules` as GDL text."""

    name: str
    rules_hash: str
    rules: str


class FeatureRow(NamedTuple):
    """One feature's value as one learner found it (a cell of Table 1), and where it comes from."""

    learner: int
    game: str
    role: str
    opponent: str
    feature: str
    value: float
    visits: int


@dataclass
class StoredLearner:
    """Who learned. `record_..` and `store_features` move the two counts on; the rest never changes.

    role      ALL_ROLES of a learner of sequences
    sources   the `origin` of every learner whose features this one began with
    outcomes  every goal value that a match can pay this role, ascending
    """

    id: int
    game: str
    rules_hash: str
    role: str
    opponent: str
    settings: dict[str, Any]
    seed: int
    version: str
    created: str
    sources: list[dict[str, Any]]
    outcomes: list[int]
    num_matches: int
    features_at: int

    @property
    def origin(self) -> dict[str, Any]:
        """This learner's identity and age in words that hold in every store."""
        return {key: getattr(self, key) for key in (*IDENTITY, "outcomes", "num_matches")}

    @property
    def has_sequences(self) -> bool:
        """Whether it learns sequences, and not values of features."""
        return self.role == ALL_ROLES

    @property
    def depth(self) -> int:
        """Of its features: plies below an afterstate."""
        return int(self.settings.get("depth", DEPTH))


class Afterstate(NamedTuple):
    """What a learner's own move leads to: the state as facts, its value in units of reward, its visits."""

    facts: frozenset[str]
    q: float
    visits: int


class Trajectory(NamedTuple):
    """A match that is over and not learned from yet.

    number  its place among those of its learner: they are learned from in this order
    match   tells it from every other match of the learner
    moves   per ply a move of every role, as text, in the order of roles
    end     "terminal", "stuck" or "cap", see `play.match`
    """

    number: int
    match: str
    moves: tuple[tuple[str, ...], ...]
    end: str


class SequenceRow(NamedTuple):
    """A sequence in a SeqTable: its moves in order, what its origins have in common, how often it was met.

    kind     "duet" or "solo"
    moves    as terms, (does ROLE MOVE)
    several  whether its origins were different states
    """

    role: str
    kind: str
    moves: tuple[str, ...]
    context: frozenset[str]
    encounters: int
    several: bool


class PairRow(NamedTuple):
    """A context pair, and what is known of its advice; see `contexts.Record`.

    branches: its sequences, each as its kind and its moves, as in `SequenceRow`.
    """

    role: str
    context: frozenset[str]
    branches: tuple[tuple[str, tuple[str, ...]], ...]
    comments: float
    agreements: float
    tries: float
    successes: float
