"""`python -m bench [NAME ...]`: run the named benchmarks, or all, and print their tables.

`python -m bench NAME --option …` runs one that needs files, or an experiment of a document; it says
which options it has with `--help`.
"""

from __future__ import annotations

import sys
from importlib import import_module

BENCHMARKS = {
    "counting": "64 three-way marginals, against the bare NumPy loop and across sources",
    "outofcore": "64 three-way marginals of Parquet larger than memory, and a release",
    "oracle": "best responses: time per perturbation, and the gap to a proven optimum",
    "rules": "the public rules of `fem` on generated tables, each constant moved by itself",
    "monotone": "the default over seven ε on four tables: does the error fall at every step?",
    "profile": "where the default's time goes, against bare NumPy loops",
    "web": "the page: fifty readers while a release is being made",
    "picks": "Frank-Wolfe: the worst of 20,000 fits, and the number of picks",
    "conditions": "rows under a condition: records alone and moved ones against the truth",
    "house": "lines, hooks, crossings between rooms; CPU and memory of the commands",
}
WITH_FILES = {
    "drafts": "what a draft decides about every column, and how often well ([FOLDER …])",
    "coverage": "intervals of `estimate` and the test of independence on known populations (FILE)",
    "geography": "places on land: a map of a public table and its stand-in (--houses, --mask)",
    "shapes": "columns of numbers: the ladder, quantiles and bins, with simulated noise ([FOLDER])",
    "tables": "every table of a folder, ours and rivals: errors, forecasts, AUC, CPU, memory (FOLDER)",
    "realtables": "numbers of real tables through whole releases: shape, quantiles, bins (FOLDER)",
    "families": "households and patients: flat, independent children, views ([--diabetes FILE])",
    "large_families": "a million families: every engine's counts, and a release from Parquet (FOLDER)",
    "graphs": "graphs and their stand-ins: degrees, blocks, clustering (--edges, --nodes)",
}
EXPERIMENTS = {
    "game": "the games' figures: worst errors over ε and over workloads, against HDMM",
    "rounds": "how many rounds the public rules take, and what these cost",
    "peers": "the default and other methods against what installs from PyPI",
    "mia": "attacks on memberships against ε for private linear models",
    "querygan": "generator networks, their critics and what they cost",
}


def main(names: list[str]) -> int:
    """Run benchmarks by name."""
    if names and names[0] in EXPERIMENTS:
        from bench.commands.game import app
        from understudy.cli.app import main as commands

        return commands(names, app, "python -m bench")
    if names and names[0] in WITH_FILES:
        import_module(f"bench.{names[0]}").main(names[1:])
        return 0
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown or "--help" in names:
        print("usage: python -m bench [NAME ...]\n")
        for name, what in (BENCHMARKS | WITH_FILES | EXPERIMENTS).items():
            print(f"  {name:10} {what}")
        return 2 if unknown else 0
    for name in names or BENCHMARKS:
        print(f"\n## {name}: {BENCHMARKS[name]}\n", flush=True)
        import_module(f"bench.{name}").main()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
