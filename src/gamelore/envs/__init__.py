"""Environments for libraries of reinforcement learning and game theory: any game, any of its roles, any opponents.

    import gymnasium
    import gamelore.envs

    env = gymnasium.make("gamelore/connectfour-v0", opponent="uct:simulations=100")
    envs = gymnasium.make_vec("gamelore/connectfour-v0", num_envs=4096)     # in machine code
    env = gymnasium.make("gamelore/Game-v0", game="my-game.kif")            # a rulesheet of your own

    env = gamelore.envs.aec_env("connectfour")                              # PettingZoo
    game = gamelore.envs.open_spiel_game("connectfour")                     # OpenSpiel
    batch = gamelore.envs.GameBatch("connectfour", 4096)                        # nothing but numpy

The import registers the environments of Gymnasium; `gymnasium.make("gamelore.envs:gamelore/connectfour-v0")` needs no
import.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from .batch import GameBatch
from .observation import Observation, ObservationKind

if TYPE_CHECKING:
    from .agents import GameAECEnv, GameParallelEnv, aec_env, parallel_env
    from .single import GameEnv
    from .spiel import open_spiel_game
    from .vector import GameVectorEnv

__all__ = [
    "GameAECEnv",
    "GameBatch",
    "GameEnv",
    "GameParallelEnv",
    "GameVectorEnv",
    "Observation",
    "ObservationKind",
    "aec_env",
    "open_spiel_game",
    "parallel_env",
]

_NEEDS = {
    "single": ("gymnasium", "GameEnv"),
    "vector": ("gymnasium", "GameVectorEnv"),
    "spiel": ("pyspiel", "open_spiel_game"),
    "agents": ("pettingzoo", "GameAECEnv", "GameParallelEnv", "aec_env", "parallel_env"),
}
"""Module -> the library that it needs, and its names."""


def __getattr__(name: str) -> Any:
    """Import the module that has a name. Raise ImportError with advice if its library is not installed."""
    from importlib import import_module

    for module, (library, *names) in _NEEDS.items():
        if name in names:
            if find_spec(library) is None:
                package = "open_spiel" if library == "pyspiel" else "'gamelore[envs]'"
                raise ImportError(f"expected {library} for gamelore.envs.{name}, got none; pip install {package}")
            return getattr(import_module(f".{module}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the public names."""
    return __all__


def _register() -> None:
    """Register an environment of Gymnasium for every shipped game, and "gamelore/Game-v0" for any rulesheet."""
    from gymnasium import register, registry

    from ..rulesheets import names

    single, vector = f"{__name__}.single:GameEnv", f"{__name__}.vector:GameVectorEnv"
    for title, options in (("Game", {}), *((name, {"game": name}) for name in names())):
        if (about := f"gamelore/{title}-v0") not in registry:
            register(about, entry_point=single, vector_entry_point=vector, kwargs=options)


if find_spec("gymnasium") is not None:
    _register()
