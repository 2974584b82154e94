"""The strongest player: one search in compiled code, with proofs, whose tree is kept from move to move.

Reading order: `settings`, `tree` (arrays), `proofs` (bounds), `walks` (selection and backing up), `growth` (batches),
`thinking` (the search of a match), `outlook` and `puzzles` (games with one role), `champion` (the player).
"""
