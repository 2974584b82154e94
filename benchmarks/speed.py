"""Compare the speed of gamelore and OpenSpiel on one thread, in process CPU time: `make bench`.

Both run in turn in one process. Each figure is the median of REPEATS, each ratio the median of the pairs. In
wall-clock time and new processes it also measures `import gamelore`, and the time from text to the first legal moves
with an empty and a filled cache.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
from open_spiel.python import rl_environment
from open_spiel.python.algorithms import random_agent, tabular_qlearner

import gamelore
from gamelore.learning.td.initial_values import LearnerSettings
from gamelore.learning.td.series import play_series
from gamelore.matches.opponents import OpponentSettings
from gamelore.players.position_graph import PositionGraph
from sidebyside import Work, in_turn, lasting, their_playouts

REPEATS = 5
SECONDS = 0.5  # of each measurement of playouts
LANES = 1024


def our_playouts(name: str) -> Work:
    """Return about SECONDS of random playouts from GDL."""
    game = gamelore.load(name, engine="native")
    game.playouts(1)  # compiles

    def ours(n: int) -> Work:
        return lambda: game.playouts(n, seed=1, threads=1).num_playouts

    return lasting(ours, SECONDS, 1000)


def our_matches(name: str, lanes: int, matches: int, *, keeps_graph: bool = True) -> Work:
    """Return matches of the baseline learner against the random opponent, with learning after each match.

    keeps_graph  whether the positions of earlier runs are known, as for later series of the same game
    """
    game = gamelore.load(name, engine="native")
    graph = PositionGraph(game)

    def run() -> int:
        play_series(
            game,
            0,
            [LearnerSettings(kind="baseline", initialisation="lazy")] * lanes,
            [None] * lanes,
            [OpponentSettings("random")] * lanes,
            matches,
            [(1, lane, 0) for lane in range(lanes)],
            graph=graph if keeps_graph else None,
        )
        return lanes * matches

    return run


def their_matches(name: str, episodes: int) -> Work:
    """Return episodes of OpenSpiel's tabular Q-learner, in Python, against its random agent."""
    environment = rl_environment.Environment(name)
    num_actions = environment.action_spec()["num_actions"]
    learner = tabular_qlearner.QLearner(0, num_actions)
    opponent = random_agent.RandomAgent(1, num_actions)
    agents = [learner, opponent]

    def run() -> int:
        for _ in range(episodes):
            step = environment.reset()
            while not step.last():
                player = step.observations["current_player"]
                step = environment.step([agents[player].step(step).action])
            for agent in agents:
                agent.step(step)
        return episodes

    return run


def compare(what: str, wanted: float, ours: Work, theirs: Work) -> dict[str, object]:
    ours()
    theirs()
    pairs = in_turn(ours, theirs, REPEATS)
    ratios = [mine / other for mine, other in pairs]
    row = {
        "what": what,
        "ours_per_s": statistics.median(mine for mine, _ in pairs),
        "openspiel_per_s": statistics.median(other for _, other in pairs),
        "ratio": statistics.median(ratios),
        "ratio_min": min(ratios),
        "ratio_max": max(ratios),
        "wanted": wanted,
    }
    print(
        f"{what:58} {row['ours_per_s']:14,.0f} {row['openspiel_per_s']:12,.0f} "
        f"{row['ratio']:8.1f} ({min(ratios):.1f}-{max(ratios):.1f}), wanted {wanted:g}"
    )
    return row


START = """
import sys, time
import gamelore
from gamelore import rulesheets
text = rulesheets.path(sys.argv[1]).read_text()
start = time.perf_counter()
gamelore.load(text).start().legal
print(time.perf_counter() - start)
"""


def starts(name: str, wanted: float) -> list[dict[str, object]]:
    rows = []
    for kind, limit in (("empty cache", wanted), ("filled cache", 0.15)):
        times: list[float] = []
        with tempfile.TemporaryDirectory() as folder:
            for _ in range(REPEATS):
                cache = Path(folder) / (str(len(times)) if kind == "empty cache" else "same")
                times.append(in_fresh_process(["-c", START, name], {"GAMELORE_CACHE": str(cache)}))
        measured = times if kind == "empty cache" else times[1:]
        rows.append(
            {"what": f"text to first legal moves, {name}, {kind}", "s": statistics.median(measured), "wanted": limit}
        )
    return rows


def in_fresh_process(arguments: list[str], environment: dict[str, str]) -> float:
    done = subprocess.run(
        [sys.executable, *arguments], env=os.environ | environment, check=True, capture_output=True, text=True
    )
    return float(done.stdout)


IMPORT = "import time; start = time.perf_counter(); import gamelore; print(time.perf_counter() - start)"


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare the speed of gamelore and OpenSpiel on one thread.")
    parser.add_argument("--json", type=Path, default=Path("out/bench.json"), metavar="FILE", help="file of the figures")
    given = parser.parse_args()
    print(f"{'CPU-second rates, one thread':58} {'gamelore':>14} {'OpenSpiel':>12}    ratio")
    rows = [
        compare(
            "random playouts, tic-tac-toe (GDL / C++)",
            5,
            our_playouts("tictactoe"),
            lasting(partial(their_playouts, "tic_tac_toe"), SECONDS, 1000),
        ),
        compare(
            "random playouts, connect four 7x6 (GDL / C++)",
            12,
            our_playouts("connectfour"),
            lasting(partial(their_playouts, "connect_four"), SECONDS, 1000),
        ),
        compare(
            f"learning matches, tic-tac-toe, {LANES} lanes, positions known",
            15,
            our_matches("tictactoe", LANES, 50),
            their_matches("tic_tac_toe", 1000),
        ),
        compare(
            "learning matches, tic-tac-toe, 1 lane, positions known",
            10,
            our_matches("tictactoe", 1, 5000),
            their_matches("tic_tac_toe", 1000),
        ),
        compare(
            "learning matches, tic-tac-toe, 1 lane, every position new",
            2,  # not 10: most of this time goes into the expansion of positions, not into the loop
            our_matches("tictactoe", 1, 5000, keeps_graph=False),
            their_matches("tic_tac_toe", 1000),
        ),
    ]
    times = [
        {
            "what": "import gamelore",
            "s": statistics.median(in_fresh_process(["-c", IMPORT], {}) for _ in range(REPEATS)),
            "wanted": 0.5,
        },
        *starts("tictactoe", 0.5),
        *starts("othello4", 2.0),
    ]
    for row in times:
        print(f"{row['what']:58} {row['s']:8.3f} s, wanted under {row['wanted']:g} s")
    out: Path = given.json
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps({"rates": rows, "times": times, "numpy": np.__version__}, indent=1))
    print(f"written to {out}")


if __name__ == "__main__":
    main()
