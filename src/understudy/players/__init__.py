"""Query players and data players, one file each. See `base` for the two protocols."""
