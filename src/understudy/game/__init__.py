"""The game: one loop, and methods that are pairings of players."""

from understudy.game.play import Progress, last_state, play, remarks, silent

__all__ = ["Progress", "last_state", "play", "remarks", "silent"]
