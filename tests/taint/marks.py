"""Values that cannot be mistaken: every private cell holds one, and is known wherever it turns up."""

import re
from random import Random

COLUMNS = ("city", "age", "income", "day", "note", "who")
ROWS = 24

SCHEMA = """
[understudy]
version = 1

[[column]]
name = "city"
type = "category"
values = ["Aa", "Bb", "Cc"]

[[column]]
name = "age"
type = "integer"
lower = 0
upper = 99
bins = 10

[[column]]
name = "income"
type = "number"
lower = 0
upper = 1000
bins = 5
nullable = true

[[column]]
name = "day"
type = "date"
lower = 2020-01-01
upper = 2020-12-31
bins = 12

[[column]]
name = "note"
type = "identifier"

[[column]]
name = "who"
type = "identifier"
"""

_TEXT = re.compile(r"zqxv[0-9a-f]{2}", re.IGNORECASE)
_NUMBER = re.compile(r"7[.,]?3[.,]?9[.,]?1[.,]?7[.,]?3[.,]?[0-9e]")  # longer than microseconds
_DAY = re.compile(r"2391[-/.]\d")
_FILLING = re.compile(r"\x00|\\x00|\\u0000|\\0")


def text(rng: Random) -> str:
    return f"zqxv{rng.getrandbits(24):06x}"


def number(rng: Random) -> int:
    return 7_391_730_000 + rng.randrange(10_000)


def day(rng: Random) -> str:
    return f"2391-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}"


def row(rng: Random) -> list[str]:
    """One private row, as a text file has it."""
    numbers = str(number(rng)), f"{number(rng)}.5"
    return [text(rng), *numbers, day(rng), text(rng), text(rng)]


def found(said: str) -> str | None:
    """The first marked value in a text, with what stands around it; None if there is none."""
    plain = _FILLING.sub("", said)
    for pattern in (_TEXT, _NUMBER, _DAY):
        if match := pattern.search(plain):
            return plain[max(0, match.start() - 120) : match.end() + 60]
    return None
