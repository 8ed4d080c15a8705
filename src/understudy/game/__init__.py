"""The game: one loop, and methods that are pairings of players."""

from understudy.game.pairing import require_pair
from understudy.game.play import Played, play
from understudy.progress import Progress, Watch, silent

__all__ = ["Played", "Progress", "Watch", "play", "require_pair", "silent"]
