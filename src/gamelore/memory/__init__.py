"""What the player gamelore remembers of games: lessons, tests of them, and variants of games."""
