"""The game: one loop, and methods that are pairings of players."""

from understudy.players.base import Played, play, require_pair

__all__ = ["Played", "play", "require_pair"]
