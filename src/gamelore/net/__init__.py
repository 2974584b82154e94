"""The GGP protocol: matches over the network, with the field's programs. Reading order, which is also the import order:

    messages.py   what is said: text to messages and back
    records.py    matches as the GGP record, read back and checked
    clocks.py     how long there is to answer
    table.py      one player at one game: its matches by their ids
    worker.py     tables in a process of their own, with limits on memory and time
    workers.py    those processes: started, shared, killed and replaced
    web.py        HTTP, both ends
    server.py     a player that answers the messages of a host
    seats.py      a host's view of a player, near or far
    host.py       one match by clocks and replies
    series.py     many matches: records, resuming, the learning curve
"""
