"""The strongest player: one search in compiled code, with proofs, whose tree is kept from move to move."""
