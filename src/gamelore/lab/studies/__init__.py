"""Studies of this project's own: grids of settings, what one trial of them plays, and what their results say."""
