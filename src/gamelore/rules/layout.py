"""Rulesheets in canonical layout: the same words and comments in the same order, only the space between them is new.

- A rule stands on one line where it fits into WIDTH; else its head, then one condition a line. An `or`, `and` or `not`
  that does not fit is laid out in the same way, everything below its first part. Atoms are never broken.
- Every fact and every rule begins a line, but facts that shared a line go on sharing it, as far as it holds them.
- A blank line between rules or comments is kept, several become one; inside a rule there is none.
- A comment on lines of its own stays there, level with what follows it. One behind code stays behind it, on the last
  line of what it follows, and ends that line; such comments on lines below each other begin in the same column.

Formatting twice changes nothing more. Line ends are those of the text's first line, or `\\n`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from .gdl import LOGICAL_WORDS, Token, parse, tokens

WIDTH = 100  # of a line without its comment


def formatted(text: str, path: Path | None = None) -> str:
    """The text in canonical layout. Raises GDLSyntaxError, which names the path, where it is no rulesheet."""
    parse(text, path)
    end = "\r\n" if re.match(r"[^\r\n]*\r\n", text) else "\n"
    return "".join(f"{line}{end}" for line in _joined(_sheet(_tree(text))))


@dataclass(slots=True)
class _Node:
    """A word, a comment on lines of its own, or a list: `items`, the first of them a word.

    `note` is the comment behind it. From line `first` to line `last` of the text, counted from 1.
    """

    first: int
    last: int
    text: str = ""
    items: list[_Node] = field(default_factory=list)
    note: str = ""

    @property
    def is_comment(self) -> bool:
        return self.text.startswith(";")

    @property
    def is_plain(self) -> bool:
        """Whether there is no comment inside, so that it can stand on one line."""
        return not self.is_comment and all(item.is_plain and not item.note for item in self.items)

    @property
    def is_broken_where_long(self) -> bool:
        return bool(self.items) and self.items[0].text.lower() in LOGICAL_WORDS

    @property
    def is_rule(self) -> bool:
        return bool(self.items) and self.items[0].text == "<="

    def __str__(self) -> str:
        return f"({' '.join(map(str, self.items))})" if self.items else self.text


def _tree(text: str) -> list[_Node]:
    """What stands in a text that parses, comments in their places."""
    sheet = _Node(0, 0)
    open_nodes = [sheet]
    previous = 0
    for token in tokens(text, comments=True):
        line = token.location.line
        if token.text == ")":
            _close(open_nodes.pop(), line)
        elif token.text.startswith(";"):
            _place(token, open_nodes, line == previous)
        elif token.text == "(":
            node = _Node(line, line)
            open_nodes[-1].items.append(node)
            open_nodes.append(node)
        else:
            open_nodes[-1].items.append(_Node(line, line, token.text))
        previous = line
    return sheet.items


def _close(node: _Node, line: int) -> None:
    """A comment behind the last item of a list comes behind its parenthesis."""
    node.last = line
    node.note, node.items[-1].note = node.items[-1].note, ""


def _place(token: Token, open_nodes: Sequence[_Node], behind_code: bool) -> None:
    """Puts a comment behind what stands before it on its line, or on a line of its own."""
    inner = open_nodes[-1]
    comment = _Node(token.location.line, token.location.line, token.text.rstrip())
    if not inner.items and len(open_nodes) > 1:  # between a parenthesis and its word: goes before both
        comment.first = comment.last = inner.first
        open_nodes[-2].items.insert(-1, comment)
    elif behind_code and not inner.items[-1].note:
        inner.items[-1].note = comment.text
    else:
        inner.items.append(comment)


class _Line(NamedTuple):
    """A line of output: the code, which for a comment alone is its indentation, and a comment."""

    code: str
    note: str = ""


def _block(node: _Node, room: int) -> list[_Line]:
    """The lines of a node that has `room` columns, the first of them without indentation."""
    if node.is_comment:
        return [_Line("", node.text)]
    if node.is_plain and (len(str(node)) <= room or not node.is_broken_where_long):
        return [_Line(str(node), node.note)]
    word, *items = node.items
    indent = len(word.text) + 2
    lines = [_Line(" " * indent + code, note) for item in items for code, note in _block(item, room - indent - 1)]
    if word.note or items[0].is_comment:
        lines.insert(0, _Line(f"({word.text}", word.note))
    else:
        lines[0] = _Line(f"({word.text} {lines[0].code[indent:]}", lines[0].note)
    if items[-1].is_comment:
        return [*lines, _Line(" " * indent + ")", node.note)]
    return [*lines[:-1], _Line(f"{lines[-1].code})", node.note)]


def _sheet(items: Sequence[_Node]) -> list[_Line]:
    lines: list[_Line] = []
    for index, item in enumerate(items):
        previous = items[index - 1] if index else None
        if previous and item.first > previous.last + 1:
            lines.append(_Line(""))
        block = _block(item, WIDTH)
        if previous and _share_a_line(previous, item) and len(lines[-1].code) + len(block[0].code) < WIDTH:
            lines[-1] = _Line(f"{lines[-1].code} {block[0].code}", block[0].note)
        else:
            lines += block
    return lines


def _share_a_line(left: _Node, right: _Node) -> bool:
    plain_facts = all(node.is_plain and not node.is_rule for node in (left, right))
    return plain_facts and not left.note and left.last == right.first


def _joined(lines: Sequence[_Line]) -> Iterator[str]:
    """Code and comments put together, comments on lines below each other in one column."""
    start = 0
    while start < len(lines):
        end = start + 1
        if lines[start].code.strip() and lines[start].note:
            while end < len(lines) and lines[end].code.strip() and lines[end].note:
                end += 1
            width = max(len(line.code) for line in lines[start:end])
            yield from (f"{line.code.ljust(width)}  {line.note}" for line in lines[start:end])
        else:
            yield lines[start].code + lines[start].note
        start = end
