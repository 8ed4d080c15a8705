"""Query players: who looks where, and what it costs."""
