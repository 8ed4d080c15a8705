"""Data players: how a distribution learns from released answers."""
