"""A simulator to matches. Reading order, which is also the import order:

    kernel.py      the one decorator for compiled loops
    streams.py     random numbers as pure functions of a key, a counter and a draw
    statetable.py  states to row numbers
    graph.py       the positions met so far, their moves and successors, each worked out once
    decisive.py    moves that win, lose or give away the match within one full turn
    player.py      what a player is; the opponents of Banerjee & Stone (2007): egreedy, random, weak
    search.py      lookahead of any depth: minimax, maxmax, avgmax
    playouts.py    random playouts from any states, side by side
    forest.py      search trees of many lanes: UCB1 for every role, decoupled where they move at once
    uct.py         UCT by simulations or by the clock
    roster.py      players by name: "egreedy:filler=first,epsilon=0.05"
    match.py       one match as a state machine; the match record
    lockstep.py    the play loop: many matches side by side

Nothing is imported here: numba costs half a second, and `import gamelore` does not pay it.
"""
