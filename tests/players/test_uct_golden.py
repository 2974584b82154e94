"""The trees of `uct` stay equal to the bit: visits and mean goals of fixed seeds, committed in searched.txt."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest

import gamelore
from gamelore.players.random_streams import extend, stream
from gamelore.players.uct import SearchSettings, search

GOLDEN = Path(__file__).with_name("searched.txt")


def blocks() -> Iterator[list[str]]:
    """The lines of each search: its header, the positions of its trees, and a row for each move of a root."""
    lines = [line.partition("#")[0].rstrip() for line in GOLDEN.read_text(encoding="ascii").splitlines()]
    for is_block, block in groupby(lines, bool):
        if is_block:
            yield list(block)


BLOCKS = {block[0]: block for block in blocks()}


def searched(header: str, positions: list[str]) -> list[str]:
    """Do the search of a block again, and return the block as it should be."""
    name, engine, simulations, seed = header.split()
    game = gamelore.load(name, engine)  # type: ignore[arg-type]
    states = np.array([state_after(game, line.partition(":")[2]) for line in positions])
    settings = SearchSettings() if simulations == "default" else SearchSettings(simulations=int(simulations))
    result = search(game, states, extend(stream(int(seed)), np.arange(len(states))), settings)
    legal = game.legal(states)
    assert np.array_equal(result.offsets, legal.offsets)
    rows = [header, *positions]
    for group in range(len(states) * game.num_roles):
        tree, role = divmod(group, game.num_roles)
        for i in range(result.offsets[group], result.offsets[group + 1]):
            move = game.move_text(role, int(legal.actions[i]))
            rows.append(f"{tree} {game.roles[role]} {move} {result.visits[i]} {float(result.means[i])!r}")
    return rows


def state_after(game: gamelore.Game, plies: str) -> np.ndarray:
    position = game.start()
    for joint in filter(None, map(str.strip, plies.split(";"))):
        position = position.play([move.strip() for move in joint.split(",")])
    return position.state


def test_ten_sheets_are_there():
    """Several roles, moves at the same time, one role, and the reasoner are among them; all others move in turns."""
    games = {tuple(header.split()[:3]) for header in BLOCKS}
    assert len({name for name, engine, simulations in games if simulations == "default"}) >= 10
    assert games > {(name, "native", "default") for name in ("tictactoe3p", "goofspiel", "pegsolitaire")}
    assert any(engine == "reasoner" for _, engine, _ in games)


@pytest.mark.parametrize("header", BLOCKS)
def test_searched_arrays_are_those_committed(header):
    block = BLOCKS[header]
    assert searched(header, [line for line in block if line.startswith("tree ")]) == block
