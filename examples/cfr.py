"""CFR+ of OpenSpiel finds how to play a small simultaneous game that is given in GDL. Some seconds.

pip install open_spiel gamelore
python examples/cfr.py
"""

import numpy as np
import pyspiel
from open_spiel.python.algorithms import cfr, expected_game_score, exploitability

import gamelore
from gamelore.envs import open_spiel_game

# Both name a side at once; matching sides pay the row, and the side `gold` three times as much as `silver`.
RULES = """
(role row) (role column)
(init asked)
(<= (base asked)) (<= (base (over ?points)) (payment ?row ?column ?points))
(side gold) (side silver)
(payment gold gold 90) (payment silver silver 30) (payment gold silver 0) (payment silver gold 0)
(complement 90 10) (complement 30 70) (complement 0 100)
(<= (input ?role ?side) (role ?role) (side ?side))
(<= (legal ?role ?side) (role ?role) (side ?side) (true asked))
(<= (next (over ?points)) (does row ?row) (does column ?column) (payment ?row ?column ?points))
(<= terminal (true (over ?points)))
(<= (goal row ?points) (true (over ?points)))
(<= (goal column ?rest) (true (over ?points)) (complement ?points ?rest))
"""
ITERATIONS = 300


def main() -> None:
    game = pyspiel.convert_to_turn_based(open_spiel_game(gamelore.load(RULES)))
    solver = cfr.CFRPlusSolver(game)
    for _ in range(ITERATIONS):
        solver.evaluate_and_update_policy()
    policy = solver.average_policy()
    value = expected_game_score.policy_value(game.new_initial_state(), [policy, policy])[0]
    named = policy.action_probabilities(game.new_initial_state())
    shares = np.round(list(named.values()), 2)
    print(f"the row gets {50 + 50 * value:.1f} of 100 points (22.5 by hand), and names gold and silver with {shares}")
    print(f"exploitability {exploitability.exploitability(game, policy):.4f}")


if __name__ == "__main__":
    main()
