"""Matches: the opponents of both papers, single matches, match records, and many matches in lockstep."""
