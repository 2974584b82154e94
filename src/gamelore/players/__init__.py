"""Players: the interface of players, lookahead of fixed depth, UCT, and the graph of positions that they use."""
