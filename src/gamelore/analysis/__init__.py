"""Analysis of games: symmetries, renamings, locality, perft counts, step counters, faults that only play shows."""
