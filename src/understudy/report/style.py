"""The colours of a report. Every pair of them that carries text keeps WCAG's AA contrast."""

from __future__ import annotations

__all__ = ["COLOURS", "CURVES", "DARK", "HEAT", "LIGHT", "TEXT_ON"]

COLOURS = {
    "paper": ("#fbfbf9", "#15171a"),
    "card": ("#ffffff", "#1d2024"),
    "ink": ("#1d1f21", "#ececea"),
    "soft": ("#565b60", "#aab0b6"),
    "rule": ("#dddfe0", "#363a40"),
    "accent": ("#0a5c9e", "#7fbdf0"),
    "bar": ("#5f95c4", "#4f86b5"),
    "noise": ("#9a3b00", "#ffb27a"),
    "good": ("#cfe8da", "#1d4a35"),
    "rough": ("#fbe7bd", "#574413"),
    "bad": ("#f6d2cd", "#5f2723"),
    "alarm": ("#a3211a", "#ff9d93"),
    "heat0": ("#f0f5fa", "#1c2835"),
    "heat1": ("#d5e5f3", "#20394f"),
    "heat2": ("#aecde8", "#275071"),
    "heat3": ("#7fafd8", "#336d9b"),
    "heat4": ("#2f6fa8", "#7fb3df"),
    "heat5": ("#0e4777", "#c2dff7"),
    "onlow": ("#1d1f21", "#ececea"),
    "onhigh": ("#ffffff", "#15171a"),
}
"""On a light ground and on a dark one; templates/style.css says what they are for."""
LIGHT = {name: light for name, (light, _) in COLOURS.items()}
DARK = {name: dark for name, (_, dark) in COLOURS.items()}
HEAT = 6
"""Steps of the matrix."""
CURVES = 4
"""Looks of a line, told apart by colour and dashes."""
_LAST_LOW = 3
TEXT_ON = {
    "paper": ("ink", "soft", "accent", "alarm"),
    "card": ("ink", "soft", "accent", "alarm", "noise"),
    "good": ("ink",),
    "rough": ("ink",),
    "bad": ("ink",),
    **{f"heat{i}": ("onlow" if i <= _LAST_LOW else "onhigh",) for i in range(HEAT)},
}
"""Which colours carry text of which; held by a test."""
