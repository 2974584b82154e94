"""Matches to knowledge. Reading order, which is also the import order:

    features.py     features as data: text, values, combining sources, equivalence of rewards (B&S 2007, section 3)
    table1.py       the features and values that the paper prints (Figure 2, Table 1)
    storefile.py    the knowledge store: its file,
    storerows.py    its rows,
    tables.py       its tables,
    knowledge.py    what is in it,
    exchange.py     and how it travels
    afterstates.py  what a role's move leads to; the afterstates of a match
    merging.py      which afterstate stands for all that the symmetries make of it
    values.py       afterstate values for a batch of learners; TD(lambda), Equation 2
    coalesce.py     game trees as integers
    trees.py        finding features: below any afterstate, and in a whole game
    settings.py     what a learner is made of, as data
    initial.py      what an afterstate is worth before it was visited: what sets the three learners apart
    scoring.py      the loops: score and choose, initialise, learn
    learner.py      baseline, transfer and lookahead learners, as a player
    transfer.py     series of matches; what a source game taught
    trajectories.py matches that are over and wait to be learned from
    study.py        learning with the store: a killed process loses no finished match
    patterns.py     positions as sets of facts, and their images under the symmetries
    excerpts.py     the sequences of moves that stand in matches (Lock & Epstein 2004)
    seqtable.py     the sequences met so far, with what their origin states share
    contexts.py     context pairs: what is to be played where, as trees
    matching.py     which contexts hold in a state
    weighing.py     PWL: how far a pair is to be trusted
    advice.py       what pairs vote for
    sequences.py    SeqLearner
    seqplayer.py    SeqPlayer: tiers, the Enforcer, versions 1 and 2
    training.py     tournaments to learn from and to be tested in
    seqstore.py     what a learner of sequences knows, as rows of the store
    seqstudy.py     learning sequences with the store: a killed process loses no finished tournament
    searching.py    what was learned of moves and what a search says of them, pooled
    lasting.py      the learners of B&S as players that keep what they learn: a killed process loses no match
    players.py      every player by name, those that are made of stored knowledge included
    recognition.py  a game known by its rules, whatever its names are

Nothing is imported here: numba costs half a second, and `import gamelore` does not pay it.
"""
