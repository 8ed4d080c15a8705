"""The game: one loop, and methods that are pairings of players."""

from understudy.game.play import Played, play, require_pair

__all__ = ["Played", "play", "require_pair"]
