"""Matches to answers: experiments as data, their trials, and what they say. Reading order:

    stats.py            rewards -> means, intervals, verdicts
    grid.py             what is to be run: settings, and the seeds that follow from them
    trials.py           what was run: every finished trial, in one SQLite file
    runner.py           grid -> trials, in lockstep batches, in several processes
    claims.py           what a paper says, with endpoint and margin, written before the runs
    endpoints.py        trials -> the number that a claim is about
    drawing.py          features as pictures
    figures.py          learning curves and tables as pictures with their rows
    report.py           everything above as one page
    banerjee2007.py     Banerjee & Stone 2007, whole
    transfer.py         any source to any targets
    demo.py             the main job with fewer runs

Nothing is imported here: scipy and matplotlib load where they are used.
"""
