"""Lock & Epstein (2004): sequences of moves, the contexts in which they are advised, and a player that uses them."""
