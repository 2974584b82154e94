"""The strongest player: one search in compiled code, with proofs, a tree that is kept, and a value learned before.

Reading order: `settings`, `tree` (arrays), `value` (priors and minimax), `proofs` (bounds), `simultaneous` (mixed
strategies), `walks` (selection, backing up, a look at all children), `growth` and `native_growth` (batches), `choice`
(of a move), `thinking` (the search of a match), `rounds` (of matches between two ways to search), `teaching` (of a
value), `startclock` (a pupil, and solutions of small games), `champion` (the player).
"""
