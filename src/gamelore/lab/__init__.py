"""Matches to answers: experiments as data, their trials, and what they say. Reading order:

    stats.py            rewards -> means, intervals, verdicts
    trees.py            features as small trees, and those trees in a terminal
    drawing.py          features as pictures
    layout.py           where the facts of a game lie: boards, points with lines between them
    effects.py          what a move does to the places of a board
    pairs.py            sequences of moves with their contexts, and whole positions, in a terminal
    marks.py            pieces and moves drawn on a board
    boards.py           pairs and positions as pictures
    learned.py          learned pairs as text, the best first
    structure.py        what can be counted on the games themselves
    grid.py             what is to be run: settings, and the seeds that follow from them
    trials.py           what was run: every finished trial, in one SQLite file
    claims.py           what a paper says, with endpoint and margin, written before the runs
    costs.py            the time that a learner takes
    endpoints.py        trials -> the number that a claim is about
    workers.py          jobs shared among worker processes
    runner.py           grid -> trials, in lockstep batches, in several processes
    figures.py          learning curves and tables as pictures with their rows
    report.py           everything above as one page
    transfer.py         any source to any targets
    banerjee2007/       Banerjee & Stone 2007, whole
    lock2004/           Lock & Epstein 2004, whole
    demo.py             the main job with fewer runs

Nothing is imported here: scipy and matplotlib load where they are used.
"""
