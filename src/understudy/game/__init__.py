"""The game: one loop, and methods that are pairings of players."""

from understudy.game.play import Progress, play, silent

__all__ = ["Progress", "play", "silent"]
