"""Learning of afterstate values by TD(lambda), and transfer of features between games (Banerjee & Stone 2007)."""
