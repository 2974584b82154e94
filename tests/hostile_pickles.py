"""Damaged pickles: to load one, and to use what it gives, may fail with any exception, but never ends the process.

A pickle is not safe by design: who can write one can run code. These are pickles that a bad disk or an older version
wrote.
"""

from __future__ import annotations

import json
import pickle
import pickletools
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

GAME = "tictactoe"
PATIENCE = 120  # seconds for all pickles of an example
BYTES = 4 << 30  # address space of the process that loads them


def drawn(random: Random) -> dict[str, Any]:
    """Draw an object, and edits of some copies of its pickle: a place as a share, a byte, what is meant."""
    copies = [
        [[random.random(), random.randrange(256), random.random() < 0.8] for _ in range(random.randint(1, 4))]
        for _ in range(random.randint(5, 60))
    ]
    return {"object": random.choice(list(OBJECTS)), "copies": copies}


def reduced(example: dict[str, Any], fails: Callable[[Any], bool]) -> dict[str, Any]:
    """Return a copy alone that fails, if there is one."""
    for copy in example["copies"]:
        if fails(single := {**example, "copies": [copy]}):
            return single
    return example


def assert_the_process_lives(example: dict[str, Any]) -> None:
    """Assert that a process that loads and uses these pickles ends by itself."""
    child = subprocess.run(
        [sys.executable, str(Path(__file__))],
        input=json.dumps(example),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert child.returncode == 0, f"ended with {child.returncode}: {child.stderr[-800:]}"
    assert child.stdout.split()[-1] == str(len(example["copies"])), child.stdout


def damaged(whole: bytes, edits: list[list[Any]]) -> bytes:
    """Return a pickle with some bytes changed; most edits change a number, a text or the contents of an array."""
    places = [
        place
        for op, value, start in pickletools.genops(whole)
        if isinstance(value, int | str | bytes) and start is not None and op.name not in ("PROTO", "FRAME")
        for place in range(start + 1, start + 1 + len(str(value)))
        if place < len(whole)
    ]
    changed = bytearray(whole)
    for share, byte, is_meant in edits:
        place = places[int(share * len(places))] if is_meant else int(share * len(whole))
        changed[place] = byte
    return bytes(changed)


def _position() -> Any:
    import gamelore

    return gamelore.load(GAME).start()


def _use_position(position: Any) -> None:
    str(position)
    position.play([moves[0] for moves in position.legal.values()]).goals.values()


def _batch() -> Any:
    from gamelore.envs import GameBatch

    batch = GameBatch(GAME, 5)
    batch.step(batch.sample())
    return batch


def _use_batch(batch: Any) -> None:
    for _ in range(3):
        batch.step(batch.sample(), fresh=batch.is_over)
        batch.step(None, held=batch.mask.any(axis=1))
    batch.observations.sum() + batch.goals.sum() + batch.states.sum()


def _vector() -> Any:
    from gamelore.envs import GameVectorEnv

    envs = GameVectorEnv(GAME, 5)
    envs.reset(seed=1)
    return envs


def _use_vector(envs: Any) -> None:
    for _ in range(4):
        envs.step(envs.action_masks().argmax(axis=1))
    envs.reset(seed=2)


def _matches() -> Any:
    import gamelore

    return gamelore.play(GAME, ["random", "random"], matches=3, progress=False)


def _use_matches(matches: Any) -> None:
    str(matches)
    for match in matches:
        str(match[-1])
        match._repr_html_()


def _solved() -> Any:
    import gamelore

    return gamelore.solve(GAME, progress=False)


def _use_solved(solved: Any) -> None:
    str(solved)
    solved.moves(solved.game.start())
    list(solved.best_line.moves)


def _learned() -> Any:
    import gamelore

    return gamelore.learn(GAME, matches=5, progress=False)


def _use_learned(learned: Any) -> None:
    import gamelore

    str(learned)
    learned.moves(learned.game.start())
    gamelore.play(learned.game, [learned.player(), "random"], matches=2, progress=False)


OBJECTS: dict[str, tuple[Callable[[], Any], Callable[[Any], None]]] = {
    "position": (_position, _use_position),
    "batch": (_batch, _use_batch),
    "vector": (_vector, _use_vector),
    "matches": (_matches, _use_matches),
    "solved": (_solved, _use_solved),
    "learned": (_learned, _use_learned),
}


def main() -> None:
    """Load and use the damaged pickles of the example on standard input; print how many."""
    import resource

    example = json.load(sys.stdin)
    make, use = OBJECTS[example["object"]]
    whole = pickle.dumps(make())
    use(pickle.loads(whole))
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    for edits in example["copies"]:
        print(edits, file=sys.stderr, flush=True)
        try:
            use(pickle.loads(damaged(whole, edits)))
        except Exception as error:
            print(type(error).__name__, file=sys.stderr)
    print(len(example["copies"]))


if __name__ == "__main__":
    main()
