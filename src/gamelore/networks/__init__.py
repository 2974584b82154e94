"""N-tuple networks: values of positions that are learned in matches of a player against itself."""
