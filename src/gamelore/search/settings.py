"""Settings of the search and of its player, without its kernels, which take seconds to compile on first use."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal, get_args

from ..circuit.tape import LANES
from ..errors import GameloreError

Joint = Literal["uct", "regret", "exp3"]
MEMORY_MIB = 1024
PUZZLE_SHARE = 0.75  # of time and memory in a puzzle for the search for solutions; the tree gets the rest
MAX_PLIES = 1000  # of a playout; with random moves, a playout may never end


@dataclass(frozen=True, slots=True)
class GrowthSettings:
    """Parameters of the growth of a tree.

    exploration  factor of the square root in UCB1, for goals scaled to 0 .. 1
    least        number of walks of the first batches
    share        a larger batch has at most one walk for this number of visits of the root
    leaves       maximum number of walks of a batch
    playouts     maximum number of playouts from a leaf; as many as there are free lanes
    informed     share of the playouts that see wins in one ply, from 0 to 1, where two roles take turns and the circuit
                 allows it, see `circuit.playout.informed_playouts`. If it is not given: 0, or what teaching says
    max_plies    maximum length of a playout. A longer playout, or one in which a role has no move, is worth 0 to every
                 role; with three and more roles 5 of 100, like an end at which nobody gets anything, see proofs.py
    transpositions  whether moves in another order lead to the same node, see tree.py
    proofs       whether bounds on goals are backed up, so that the search proves what it can, see proofs.py
    scout        whether to look at all children of a node when its moves are listed, see walks.py
    prior_visits number of virtual visits of a new move by a learned value that explains everything; see value.py
    gain         factor of the difference between the learned value of a move and the mean value of its siblings
    minimax      weight of the learned values, backed up by minimax, in the value of a move, from 0 to 1. If it is not
                 given, it follows from how well they forecast, see `LinearValue.prior`
    narrowing    where two roles have opposite interests, the exploration is multiplied by 1 - narrowing * the
                 determination of the learned value; from 0 to 1
    caution      factor of the exploration in the lower bounds by which a move is chosen after a search, see choice.py;
                 0, or where several roles choose at the same time: the move with the most visits is chosen
    joint        choice of moves where several roles choose at the same time: decoupled UCT (uct), regret matching
                 (regret) or Exp3 (exp3); see simultaneous.py
    mixing       probability of a uniformly random move there, with regret and exp3
    optimism     factor of the bonus of positions with few walks there, with regret
    """

    exploration: float = 0.5
    least: int = 32
    share: int = 16
    leaves: int = LANES
    playouts: int = 16
    informed: float | None = None
    max_plies: int = MAX_PLIES
    transpositions: bool = True
    proofs: bool = True
    scout: bool = True
    prior_visits: int = 16
    gain: float = 1.0
    minimax: float | None = None
    narrowing: float = 0.7
    caution: float = 1.0
    joint: Joint = "uct"
    mixing: float = 0.05
    optimism: float = 0.0

    def __post_init__(self) -> None:
        for name in ("least", "leaves", "playouts"):
            if not 1 <= getattr(self, name) <= LANES:
                raise _refusal(name, f"from 1 to {LANES}", getattr(self, name))
        for name in ("share", "max_plies", "exploration", "prior_visits", "gain", "caution", "optimism"):
            lowest = int(name in ("share", "max_plies"))
            if not lowest <= getattr(self, name) < float("inf"):
                raise _refusal(name, f"of at least {lowest}", getattr(self, name))
        for name in ("minimax", "narrowing", "informed"):
            value = getattr(self, name)
            if value is not None and not 0 <= value <= 1:
                raise _refusal(name, "from 0 to 1", value)
        if not 0 < self.mixing <= 1:
            raise _refusal("mixing", "above 0 and up to 1", self.mixing)
        if self.joint not in get_args(Joint):
            raise GameloreError(
                f"expected joint to be {', '.join(get_args(Joint))}, got {self.joint}; choose one of these"
            )

    @property
    def shares_trees(self) -> bool:
        """Whether threads can share a tree. Regret matching and Exp3 change what the other threads read."""
        return self.joint == "uct"


def _refusal(name: str, wanted: str, value: float) -> GameloreError:
    return GameloreError(f"expected {name} {wanted}, got {value}; choose another value, or leave the option out")


@dataclass(frozen=True, slots=True)
class TeachingSettings:
    """Parameters of teaching, see teaching.py.

    simulations  number of walks of all searches together
    first        number of walks of the first generation; each generation is twice as long as the one before
    matches      number of matches side by side
    walks        number of walks for each move
    opening      maximum number of random plies at the beginning of a match
    random       probability of a random move later on
    least        a move is a sample if it has so many visits
    ridge        penalty of squared weights, or of their squared distance from those of the last generation
    trial        number of matches of the trial of informed playouts; its result counts from a quarter of them on
    trial_walks  number of walks for each of their moves
    """

    simulations: int = 64_000_000
    first: int = 250_000
    matches: int = 16
    walks: int = 512
    opening: int = 8
    random: float = 0.2
    least: int = 4
    ridge: float = 1e-3
    trial: int = 64
    trial_walks: int = 8192


@dataclass(frozen=True, slots=True)
class ChampionSettings(GrowthSettings):
    """Budget and parameters of the player; for the parameters of the growth see `GrowthSettings`.

    simulations  number of walks for each move, in addition to those that the tree remembers; 10,000 if there is no
                 other limit. In games with one role, 32 computed positions count as one walk
    seconds      time for all lanes of one call together. If several limits are given, the first that is reached ends
                 the search. Results with a time limit are not repeatable
    memory       limit on the memory of all trees together, in MiB, without what teaching takes: up to 100 MiB, or 300
                 with a knowledge store. The solution of a small game may take half as much beside them. Of matches side
                 by side, each gets half of what those before it have left, but 16 MiB at least, or from the 65th match
                 on 1 GiB divided by its number; the result of a match depends on that if its tree is full. If it is not
                 given, the environment variable GAMELORE_SEARCH_MIB, or else 1024
    ponder       whether the player also searches in the startclock and while the other roles think, and teaches itself
                 and solves the game there. Without it, a game is solved only with `solve`: before the match, in half of
                 the startclock if there is one, which other matches of the same process then wait for
    threads      number of threads. They share a tree if only time limits the search; with a budget of simulations they
                 have a tree each, so that the result is repeatable. If it is not given: one for each processor core
                 that the process may use, up to 4, if only time limits the search, else 1
    teaching     number of walks of the searches that teach a value of a game before the first match, see teaching.py;
                 0 for no such value. If it is not given: none without a startclock, else as many as there is time for,
                 up to 64,000,000
    seed         seed of the random numbers for teaching
    solve        whether a small game for two roles who take turns is solved, and played by its solution. If it is not
                 given: only with a startclock, in which this has a part of the time
    settle       whether a move is made early, if only time limits the search, as soon as the rest of the time will
                 hardly change it. If it is not given: only in a match against the clock
    nimbers      whether to play sums of impartial games, such as nim, by their theory where it names a winning move
    """

    simulations: int | None = None
    seconds: float | None = None
    memory: float | None = None
    ponder: bool = True
    threads: int | None = None
    teaching: int | None = None
    seed: int = 0
    solve: bool | None = None
    settle: bool | None = None
    nimbers: bool = True

    def __post_init__(self) -> None:
        super(ChampionSettings, self).__post_init__()  # without arguments, it fails in a class with slots
        for name, least in (("simulations", 1), ("seconds", 0), ("memory", 1), ("threads", 1), ("teaching", 0)):
            value = getattr(self, name)
            if value is not None and not least <= value < float("inf"):
                raise _refusal(name, f"of at least {least}", value)

    @property
    def lessons(self) -> TeachingSettings:
        """Parameters of teaching."""
        return TeachingSettings() if self.teaching is None else TeachingSettings(simulations=self.teaching)

    @property
    def growth(self) -> GrowthSettings:
        """Parameters of the growth of a tree."""
        return GrowthSettings(**{field.name: getattr(self, field.name) for field in fields(GrowthSettings)})
