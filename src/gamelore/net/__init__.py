"""Matches over the network with the GGP protocol: a player server with worker processes, and a host."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .player_server import serve

__all__ = ["serve"]


def __getattr__(name: str) -> object:
    """Import `serve` on first use, because worker processes import this package and do not need `serve`."""
    if name == "serve":
        from .player_server import serve

        return serve
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
