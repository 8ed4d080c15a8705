"""Lists that a draft knows, written as text."""

from __future__ import annotations


def word_set(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


def items(text: str, between: str = ",") -> tuple[str, ...]:
    """What stands between commas, on however many lines."""
    return tuple(" ".join(item.split()) for item in text.split(between))


def lists(text: str) -> tuple[tuple[str, ...], ...]:
    """Lists of such items, each up to a semicolon."""
    return tuple(map(items, text.split(";")))
