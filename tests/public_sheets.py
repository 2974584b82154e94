"""Public rulesheets for the checks of other libraries: 1 to 6 roles, in turns and at the same time."""

import pytest

PUBLIC = [
    *("eightPuzzle", "hanoi", "lightsOut", "asteroidsParallel"),
    *("breakthroughSmall", "connectFour", "reversi", "nim4", "pawnWhopping", "ticTacToe", "checkersTiny"),
    *("connectFourSimultaneous", "tron_10x10", "roshambo2", "gt_prisoner", "biddingTicTacToe"),
    *("3pConnectFour", "tictactoe_3player", "smallest_4player", "4pttc"),
    pytest.param("gt_two_thirds_6p", marks=pytest.mark.long),  # 20 seconds until it is compiled
]
