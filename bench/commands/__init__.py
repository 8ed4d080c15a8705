"""The commands of `python -m bench` that run published experiments again, on public tables."""
