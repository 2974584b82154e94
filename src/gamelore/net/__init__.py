"""The GGP protocol: matches over the network, with the field's programs. Reading order, which is also the import order:

    messages.py      what is said: text to messages and back
    records.py       matches as the GGP record, read back and checked
    clocks.py        how long there is to answer
    believed.py      a match as its player knows it, who may have missed a turn
    table.py         one player at one game: its matches by their ids
    worker.py        tables in a process of their own, with limits on memory and time
    process.py       that process as its owner sees it: asked, timed, killed
    running.py       a match, whichever process plays it
    workers.py       the processes: started, shared and replaced
    http.py          HTTP, as much of it as the protocol has
    web.py           who may send messages, and how
    server.py        a player that answers the messages of a host
    serving.py       all of that in one call
    client.py        sending messages
    seats.py         a host's view of a player, near or far
    host.py          one match by clocks and replies
    seriesfolder.py  what lasts of many matches: records, the journal
    series.py        many matches: resuming, standings, the learning curve

Nothing is imported here but `serve`, and that where it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .serving import serve as serve

__all__ = ["serve"]


def __getattr__(name: str) -> object:
    """`serve`, imported where it is used: workers, which import this room as well, need nothing of it."""
    if name == "serve":
        from .serving import serve

        return serve
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
