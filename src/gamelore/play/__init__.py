"""A simulator to matches. Reading order, which is also the import order:

    kernel.py      the one decorator for compiled loops
    streams.py     random numbers as pure functions of a key, a counter and a draw
    statetable.py  states to row numbers
    graph.py       the positions met so far, their moves and successors, each worked out once
    decisive.py    moves that win, lose or give away the match within one full turn
    player.py      what a player is; the opponents of Banerjee & Stone (2007): egreedy, random, weak
    positions.py   a player for people, who think of one position at a time
    search.py      lookahead of any depth: minimax, maxmax, avgmax
    playouts.py    random playouts from any states, side by side
    forest.py      search trees of many lanes: UCB1 for every role, decoupled where they move at once
    uct.py         UCT by simulations or by the clock
    canonical.py   positions that count as one: symmetric ones, and those that a step counter tells apart
    retrograde.py  from the ends of a game back to what every position is worth
    turntaking.py  a game as the solver sees it, and what it refuses
    sampling.py    random matches before a game is solved: a lower bound for the number of its positions
    expansion.py   every position of a game, each once
    solutionfile.py  arrays in one file, memory-mapped
    solve.py       exact values of every reachable position
    perfect.py     what a solution says of moves; the perfect player
    reasonable.py  the weaker opponents of Lock & Epstein (2004): reasonable, expert, novice
    bestline.py    how a solved game goes under best play
    regret.py      the points that moves lose against best play
    roster.py      players by name: "egreedy:filler=first,epsilon=0.05", or from a file: "mine.py:Careful"
    match.py       one match as a state machine; the match record
    lockstep.py    the play loop: many matches side by side
    expectation.py exact expected results of players who know no history

Nothing is imported here: numba costs half a second, and `import gamelore` does not pay it.
"""
