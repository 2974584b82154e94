"""GDL text to a simulator. Reading order, which is also the import order, and the way of the data:

text, and what is wrong with it
    gdl.py             text to terms and rules, each with its line and column
    options.py         variants of one sheet
    layout.py          rulesheets in canonical layout
    relations.py       what stands in a rulesheet and what depends on what
    flaws.py           what can be wrong with it, one function for each kind
    spelling.py        and with its names
    check.py           findings, each with its place, its rule and a remedy

rules to rules that ground smaller
    clauses.py         rules with flat bodies
    stratification.py  what they depend on, and by way of which negations
    names.py           numbers for names: the order of actions
    asp.py             rules as an answer-set program; clingo within limits
    statics.py         relations that depend on no state, derived once
    domains.py         which terms can stand where; estimates of sizes
    persistence.py     facts that never change
    chase.py           whether conditions can hold together
    unique.py          facts of which at most one holds
    projection.py      long bodies cut in two
    demand.py          relations derived where they are asked for
    rewrite.py         all of this, for compiling and for reasoning
    bounds.py          rules held within `base` and `input`

rules to answers: the plain reasoner
    ground.py          rules to ground rules over integer atoms
    reasoner.py        moves, goals and successors of a state straight from the rules

ground rules to a circuit to machine code
    groundrules.py     ground rules in flat arrays
    factor.py          to equivalent ones that need fewer gates
    cycles.py          cycles of a graph, and cuts
    circuit.py         gates: their parts, how they are built, plain evaluation
    translate.py       ground rules to a circuit
    schedule.py        the order of evaluation
    planes.py          how 512 positions lie in memory
    wide.py            gates of many inputs
    tape.py            gates as numbers, for one function that is the same for all games
    native.py          gates to LLVM IR
    cache.py           compiled games on disk
    ir.py              LLVM IR written with variables, loops and branches
    kernels.py         machine code that is the same for every game
    interpreter.py     the code that evaluates tapes
    rows.py            batches of positions in and out of the circuit
    draw.py            a random move in each of 512 lanes
    block.py           random matches in 512 lanes
    playout.py         random matches on all cores

the simulator, and tools that play it
    engine.py          the two engines, natively and by the reasoner
    promises.py        what a circuit takes for granted of a state
    bounded.py         both engines as one: natively within bounds, by the reasoner outside
    turns.py           whose turn it is
    board.py           a state as boards
    game.py            Game and Position: what everybody else sees
    counter.py         facts that count the plies, and matter to nothing but the end
    colouring.py       a graph, and colours of its vertices, refined
    automorphisms.py   its automorphisms, by VF2 where colours are not enough
    tallies.py         rules that count, as rules that treat all that is counted alike
    rulegraph.py       ground rules as such a graph
    symmetry.py        permutations of facts and moves that the rules do not notice
    sheetgraph.py      a rulesheet as such a graph, and a hash of it, the same whatever its names are
    renaming.py        one game in other words: found, proved, translated
    neighbours.py      which facts belong together by the rules, such as those of a line
    vicinity.py        which facts and moves lie near each other
    perft.py           sequences of joint moves, counted
    speed.py           how fast a game is
    query.py           what the rules, as they are written, say of one state
    watch.py           notes what a rulesheet should not do
    reach.py           the reachable states
    tryout.py          plays a game to see whether it behaves
    playcheck.py       findings from that

Nothing is imported here, and nothing in this room imports numba.
"""
