"""What a learner is made of, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias, get_args

from ..errors import GameloreError
from ..play.search import Heuristic

Kind = Literal["baseline", "transfer", "lookahead"]
Initialisation = Literal["lazy", "siblings", "eager"]
Ties = Literal["random", "first"]
Control = Literal["terminal", "shuffled", "features"]
Symmetric = Literal["all", "none"]
"""Which symmetries of a game what is learned is kept once for."""
Pairs: TypeAlias = "Mapping[int, int] | tuple[tuple[int, int], ...]"


@dataclass(frozen=True, slots=True)
class LearnerSettings:
    """One learner. The defaults are the paper's (section 4), where it names them.

    kind            where first values come from: "baseline" default; "transfer" the value of the feature that
                    matches, terminal afterstates their true reward (readings.md, B&S 14), else default;
                    "lookahead" a search, with terminal positions at any level at their true reward
    heuristic       of that search (`play.search`): what the others are taken to do
    initialisation  "lazy": an afterstate gets its first value after the match that visited it, and counts as
                    default before; "siblings": so do all afterstates that could have been chosen in that match;
                    "eager": when it is first scored, which looks ahead while choosing (readings.md, B&S 5, 11)
    alpha, gamma, lam, epsilon   learning rate, discount, lambda of Equation 2; probability of a random move
    depth           plies looked at below an afterstate
    default         the value of what nothing is known about (the paper's delta)
    ties            among the best: "random", or the "first" in action order
    equivalence     transfer: ((outcome here, outcome of the source), ..); None: `Equivalence.default`
    control         transfer: "terminal" recognises terminal afterstates and uses no feature; "shuffled" has the
                    values change places among the features, in each run another way; "features" uses features
                    without recognising terminal afterstates
    symmetry        "all": afterstates that the symmetries of the game make of each other have one value and count as
                    one; ours, as the paper knows no symmetries
    """

    kind: Kind = "baseline"
    heuristic: Heuristic = "minimax"
    initialisation: Initialisation = "lazy"
    alpha: float = 0.3
    gamma: float = 1.0
    lam: float = 0.7
    epsilon: float = 0.01
    depth: int = 2
    default: float = 50.0
    ties: Ties = "random"
    equivalence: Pairs | None = None
    control: Control | None = None
    symmetry: Symmetric = "none"

    def __post_init__(self) -> None:
        for name, words in (
            ("kind", get_args(Kind)),
            ("heuristic", get_args(Heuristic)),
            ("initialisation", get_args(Initialisation)),
            ("ties", get_args(Ties)),
            ("control", (None, *get_args(Control))),
            ("symmetry", get_args(Symmetric)),
        ):
            if getattr(self, name) not in words:
                choices = " | ".join(map(str, words))
                raise GameloreError(f"expected {name} {choices}, got {getattr(self, name)!r}; choose one of these")
        for name in ("alpha", "gamma", "lam", "epsilon"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise GameloreError(f"expected {name} from 0 to 1, got {getattr(self, name)}; mend the settings")
        if self.depth < 0:
            raise GameloreError(f"expected a depth of at least 0, got {self.depth}; depth counts plies")
        if self.kind != "transfer" and (self.control or self.equivalence):
            raise GameloreError(
                f"expected control and equivalence with the transfer learner only, got {self.kind}; leave them out"
            )
        if self.equivalence is not None:  # also given as a dictionary or as lists from JSON
            object.__setattr__(self, "equivalence", tuple(sorted(dict(self.equivalence).items())))

    def described(self) -> dict[str, Any]:
        """All that tells one learner from another, for the store and the lab to keep, JSON-able.

        What came later is left out where it has its default: learners that were stored before are still found.
        """
        about = asdict(self)
        if self.symmetry == "none":
            del about["symmetry"]
        return about
