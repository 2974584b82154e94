"""Settings of the search and of its player, without its kernels, which take seconds to compile on first use."""

from __future__ import annotations

from dataclasses import dataclass, fields

from ..circuit.tape import LANES
from ..errors import GameloreError

MEMORY_MIB = 1024
MAX_PLIES = 1000  # of a playout; with random moves, a playout may never end


@dataclass(frozen=True, slots=True)
class GrowthSettings:
    """Parameters of the growth of a tree.

    exploration  factor of the square root in UCB1, for goals scaled to 0 .. 1
    least        number of walks of the first batches
    share        a larger batch has at most one walk for this number of visits of the root
    leaves       maximum number of walks of a batch
    playouts     maximum number of playouts from a leaf; as many as there are free lanes
    max_plies    maximum length of a playout; a longer playout gives 0 to every role
    """

    exploration: float = 0.5
    least: int = 32
    share: int = 16
    leaves: int = LANES
    playouts: int = 16
    max_plies: int = MAX_PLIES

    def __post_init__(self) -> None:
        for name in ("least", "leaves", "playouts"):
            if not 1 <= getattr(self, name) <= LANES:
                raise _refusal(name, f"from 1 to {LANES}", getattr(self, name))
        for name, lowest in (("share", 1), ("max_plies", 1), ("exploration", 0)):
            if not lowest <= getattr(self, name) < float("inf"):
                raise _refusal(name, f"of at least {lowest}", getattr(self, name))


def _refusal(name: str, wanted: str, value: float) -> GameloreError:
    return GameloreError(f"expected {name} {wanted}, got {value}; choose another value, or leave the option out")


@dataclass(frozen=True, slots=True)
class ChampionSettings(GrowthSettings):
    """Budget and parameters of the player; for the parameters of the growth see `GrowthSettings`.

    simulations  number of walks for each move, in addition to those that the tree remembers; 10,000 if there is no
                 other limit
    seconds      time for all lanes of one call together. If several limits are given, the first that is reached ends
                 the search. Results with a time limit are not repeatable
    memory       limit on the memory of all trees together, in MiB; if it is not given, the environment variable
                 GAMELORE_SEARCH_MIB, or else 1024
    ponder       whether the player also searches in the startclock and while the other roles think
    """

    simulations: int | None = None
    seconds: float | None = None
    memory: float | None = None
    ponder: bool = True

    def __post_init__(self) -> None:
        super(ChampionSettings, self).__post_init__()  # without arguments, it fails in a class with slots
        for name, least in (("simulations", 1), ("seconds", 0), ("memory", 1)):
            value = getattr(self, name)
            if value is not None and not least <= value < float("inf"):
                raise GameloreError(
                    f"expected {name} of at least {least}, got {value}; choose another value, or leave the option out"
                )

    @property
    def growth(self) -> GrowthSettings:
        return GrowthSettings(**{field.name: getattr(self, field.name) for field in fields(GrowthSettings)})
