"""Benchmarks: ratios against a baseline in the same run. `python -m bench [NAME ...]`."""
