"""Actions of wrong types, shapes and ranges for every kind of environment: refused in words, and nothing changed."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from random import Random
from typing import Any

import numpy as np

from gamelore.envs import GameAECEnv, GameBatch, GameEnv, GameParallelEnv, GameVectorEnv
from gamelore.errors import GameloreError, IllegalMoveError
from gamelore.game.game import Game
from gamelore.rulesheets import load

GAMES = ("tictactoe", "goofspiel", "pegsolitaire", "tictactoe3p")
LANES = 5
LONGEST = 600  # characters of a message
NUMBERS = (0, 1, -1, -2, 8, 9, 10, 31, 255, 10**6, 2**31, 2**63, 2**64, -(2**63) - 1, 2**70)
TYPES = (
    "bool",
    "int8",
    "uint8",
    "int32",
    "int64",
    "uint64",
    "float32",
    "float64",
    "complex64",
    "object",
    "U3",
    "datetime64[s]",
)
SHAPES = ((), (0,), (1,), (2,), (LANES,), (LANES, 1), (LANES, 2), (LANES, 3), (2, LANES), (LANES, 2, 1))
KINDS = ("number", "float", "text", "none", "bool", "scalar", "array", "list", "mapping", "legal")


@cache
def compiled(name: str) -> Game:
    return load(name)


def drawn(random: Random) -> dict[str, Any]:
    """Draw an environment, and what is given to its steps."""
    steps = [value(random, 0) for _ in range(random.randrange(1, 12))]
    return {"env": random.choice(list(ENVIRONMENTS)), "game": random.choice(GAMES), "steps": steps}


def value(random: Random, depth: int) -> dict[str, Any]:
    """Draw what stands for an action, as JSON can hold it."""
    kind = random.choice(KINDS if depth < 2 else KINDS[:6])
    number = random.choice(NUMBERS)
    match kind:
        case "float":
            return {"kind": kind, "number": random.choice(["nan", "inf", "-inf", "0.0", "1.5", "3.0"])}
        case "text":
            return {"kind": kind, "text": random.choice(["", "0", "(mark 1 1)", "noop", "\x00", "x" * 5000])}
        case "scalar" | "array":
            shape = random.choice(SHAPES) if kind == "array" else ()
            return {
                "kind": kind,
                "type": random.choice(TYPES),
                "shape": list(shape),
                "number": random.choice(NUMBERS[:10]),
            }
        case "list" | "mapping":
            return {"kind": kind, "below": [value(random, depth + 1) for _ in range(random.randrange(4))]}
        case _:
            return {"kind": kind, "number": number}


def made(given: dict[str, Any], legal: Any, keys: list[str]) -> Any:
    """Return the object that a drawn value stands for."""
    match given["kind"]:
        case "number":
            return given["number"]
        case "float":
            return float(given["number"])
        case "text":
            return given["text"]
        case "none":
            return None
        case "bool":
            return given["number"] > 0
        case "legal":
            return legal
        case "list":
            return [made(below, legal, keys) for below in given["below"]]
        case "mapping":
            return {
                key: made(below, legal, keys) for key, below in zip([*keys, "nobody"], given["below"], strict=False)
            }
        case _:
            array = np.full(given["shape"], max(-2, min(given["number"], 127))).astype(given["type"])
            return array if given["kind"] == "array" else array[()]


Seen = tuple[bytes, ...]


def _bytes(*arrays: Any) -> Seen:
    return tuple(np.asarray(array).tobytes() for array in arrays)


def _batch(game: Game) -> tuple[Callable[[Any], Any], Callable[[], Any], Callable[[], Seen]]:
    batch = GameBatch(game, LANES)

    def step(given: Any) -> None:
        try:
            batch.step(given, fresh=batch.is_over)
        except IllegalMoveError:
            batch.reset()
            raise

    return step, batch.sample, lambda: _bytes(batch.observations, batch.mask, batch.plies, batch.is_over)


def _vector(game: Game) -> tuple[Callable[[Any], Any], Callable[[], Any], Callable[[], Seen]]:
    envs = GameVectorEnv(game, LANES)
    envs.reset(seed=1)
    batch = envs.batch
    return (
        envs.step,
        lambda: np.argmax(batch.mask[:, batch.actions[0].start : batch.actions[0].stop], axis=1),
        lambda: _bytes(batch.observations, batch.mask, batch.plies),
    )


def _single(game: Game) -> tuple[Callable[[Any], Any], Callable[[], Any], Callable[[], Seen]]:
    env = GameEnv(game)
    seen = list(env.reset(seed=1))

    def step(given: Any) -> None:
        observation, _, terminated, truncated, info = env.step(given)
        seen[:] = env.reset() if terminated or truncated else (observation, info)

    return step, lambda: int(np.argmax(seen[1]["action_mask"])), lambda: _bytes(seen[0], seen[1]["action_mask"])


def _turns(game: Game) -> tuple[Callable[[Any], Any], Callable[[], Any], Callable[[], Seen]]:
    env = GameAECEnv(game)
    env.reset()

    def step(given: Any) -> None:
        env.step(given)
        if not env.agents or all(env.terminations.values()) or all(env.truncations.values()):
            env.reset()

    def legal() -> int:
        return int(np.argmax(env.observe(env.agent_selection)["action_mask"]))

    def seen() -> Seen:
        return _bytes(*(env.observe(agent)[part] for agent in env.agents for part in ("observation", "action_mask")))

    return step, legal, seen


def _parallel(game: Game) -> tuple[Callable[[Any], Any], Callable[[], Any], Callable[[], Seen]]:
    env = GameParallelEnv(game)
    observed = [env.reset()[0]]

    def step(given: Any) -> None:
        observations, *_ = env.step(given)
        observed[0] = observations if env.agents else env.reset()[0]

    def legal() -> dict[str, int]:
        return {agent: int(np.argmax(seen["action_mask"])) for agent, seen in observed[0].items()}

    def seen() -> Seen:
        return _bytes(*(own[part] for own in observed[0].values() for part in ("observation", "action_mask")))

    return step, legal, seen


ENVIRONMENTS = {"batch": _batch, "vector": _vector, "single": _single, "turns": _turns, "parallel": _parallel}


def assert_borne(example: dict[str, Any]) -> None:
    """Assert that each step is made, or refused in words with nothing changed; and that a legal step can follow."""
    game = compiled(example["game"])
    step, legal, seen = ENVIRONMENTS[example["env"]](game)
    for given in example["steps"]:
        before = seen()
        refusal = refused(step, made(given, legal(), list(game.roles)))
        if refusal is not None:
            assert str(refusal).startswith("expected "), refusal
            assert len(str(refusal)) <= LONGEST, len(str(refusal))
            says_reset = example["env"] == "batch" and isinstance(refusal, IllegalMoveError)
            assert says_reset or seen() == before, "a refused action changed something"
        step(legal())


def refused(step: Callable[[Any], Any], action: Any) -> GameloreError | None:
    """Return the error with which a step refuses an action, if it does."""
    try:
        step(action)
    except GameloreError as error:
        return error
    return None
