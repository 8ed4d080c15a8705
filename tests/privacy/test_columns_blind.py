"""Values found by themselves and by their prefixes, written from the definition of such charges.

A discovery counts, for every value that somebody holds, the units that hold it, adds discrete Gaussian
noise and shows those that reach a threshold τ. ρ = sides·k/(2σ²), and with probability
δ = k·Φ̄((τ − 2)/σ) at most a value of one unit alone is shown. A second level counts prefixes of what
the first has not shown; ρ and δ add up.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.exact_privacy import PrivacyViolation, check, compare
from tests.privacy.test_numbers_blind import HEAD, Script, column, converted, cost
from tests.thorough import slow
from understudy.privacy.cost import Charge, Discovery, Plan
from understudy.privacy.exact import Tables
from understudy.privacy.gate import Gate
from understudy.privacy.relation import Relation
from understudy.releases import facts, prepare
from understudy.schema import Schema
from understudy.source import read
from understudy.testing.stand_ins import StrictCharges

CODES = column("code", "category", 'values = "discover"', "prefixes = [1]", "max_values = 64")
PURPOSES = ("values of code", "1-character prefixes of code")


class Chosen(Script):
    """Shows the values in `shown` first, then every prefix; `exact` has the counts by text."""

    def __init__(self, shown: frozenset[str]) -> None:
        super().__init__()
        self.shown, self.exact = shown, []

    def see(self, texts: Any, counts: Any) -> None:
        """What is about to be drawn."""
        self.exact.append(dict(zip(texts, map(int, counts), strict=True)))

    def _draw(self, values: Any, scale: float, law: Any) -> np.ndarray:
        whole = len(self.exact) > 1
        made = [10**6 if whole or text in self.shown else -(10**6) for text in self.exact[-1]]
        return super()._draw(values, scale, lambda *_: np.array(made))


class Watched(Tables):
    """Opened counts, of which the noise is told whose they are."""

    def holders(self, held: Any, column: str) -> Any:
        texts, counts = super().holders(held, column)
        self._noise.see(texts, counts)
        return texts, counts


def discovered(
    schema: Schema, table: pa.Table, noise: Chosen, relation: str = "add-remove"
) -> Schema:
    """The schema that is found with this noise, by the gate's own questions."""
    k = 1 if schema.unit is None else schema.unit.max_rows
    event = Discovery(1.0, 2, k, Relation(relation).multiplicity)
    charges = StrictCharges(Plan(tuple(Charge(p, event) for p in PURPOSES)), Relation(relation))
    charges.unit = schema.unit

    def gate(counts: Any) -> Gate:
        made = Gate(counts, charges, Relation(relation), noise)
        made._rows = Watched(counts, noise, made.facts)
        return made

    found = facts.found(schema, facts.look(read(table), schema), gate)
    assert [purpose for purpose, _ in charges.charged] == list(PURPOSES)
    return found


def held(schema: Schema, table: pa.Table, shown: frozenset[str] = frozenset()) -> list[dict]:
    """The exact count of every value, and of every prefix after `shown` were shown."""
    noise = Chosen(shown)
    discovered(schema, table, noise)
    return [*noise.exact, {}][:2]


# --- charges ------------------------------------------------------------------------------------


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("rows", [1, 3])
def test_levels_of_a_code_share_what_its_column_may_cost(relation, rows):
    who = f'unit = "id"\nmax_rows = {rows}\n' if rows > 1 else ""
    text = HEAD + who + column("id", "identifier") + CODES.replace("[1]", "[3, 1]")
    choices = {"neighbours": relation, "rows_public": 5000} if relation == "replace" else {}
    ready = prepare(Schema.loads(text), epsilon=1, delta="1e-9", **choices)
    events = [charge.event for charge in ready.plan if isinstance(charge.event, Discovery)]
    assert [charge.purpose for charge in ready.plan][:3] == [
        "values of code", "3-character prefixes of code", "1-character prefixes of code",
    ]  # fmt: skip
    sides = 2 if relation == "replace" else 1
    assert all((event.values, event.sides) == (rows, sides) for event in events)
    # A discovery speaks of units itself; the rest of rows, at k² for a unit.
    rest = ready.plan[facts.REST].event.rho * rows**2
    spent = [cost(event) for event in events]
    assert max(spent) == pytest.approx(min(spent))
    assert sum(spent) <= 0.05 * (sum(spent) + rest) * (1 + 1e-9)
    tails = [
        event.values * math.erfc((event.threshold - 2) / event.sigma / 2**0.5) / 2
        for event in events
    ]
    assert sum(tails) <= 1e-10
    assert converted(sum(spent) + rest, 1e-9 - sum(tails)) <= 1 + 1e-9


# --- counts -------------------------------------------------------------------------------------

ROWS = ["aa"] * 5 + ["ab"] * 3 + ["ac", "b", "ba", "ba", "c", "é", "éa", "10", "1.0", "*", "a*"]


def subsets(texts: Any) -> Iterator[frozenset[str]]:
    for size in range(len(texts) + 1):
        yield from map(frozenset, itertools.combinations(texts, size))


def l2(one: dict, other: dict) -> int:
    return sum((one.get(key, 0) - other.get(key, 0)) ** 2 for key in {*one, *other})


@pytest.mark.parametrize(
    "shown", [(), slow((("aa",),)), ("aa", "ba"), slow((("aa", "ab", "ac", "ba", "c"),))]
)
def test_a_row_moves_one_value_and_one_prefix(shown):
    schema = Schema.loads(HEAD + CODES + "nullable = true\n")
    whole = held(schema, pa.table({"code": pa.array(ROWS)}), frozenset(shown))
    assert whole[0] == Counter(ROWS)
    for value in ("aa", "ab", "b", "é", "1.0", "*", "a*", "new", "", " aa ", None):
        more = held(schema, pa.table({"code": pa.array([*ROWS, value])}), frozenset(shown))
        assert l2(whole[0], more[0]) <= 1, value
        assert l2(whole[1], more[1]) <= 1, value
        if value in shown:
            assert more[1] == whole[1]  # it has its cell, and is in no parent


def test_a_unit_moves_k_values_and_k_prefixes():
    """Given what the first level has shown, which others hold as well."""
    head = HEAD + 'unit = "id"\nmax_rows = 2\n' + column("id", "identifier")
    schema = Schema.loads(head + CODES)
    rng = np.random.default_rng(1)
    names = [f"p{i}" for i in rng.integers(0, 12, 90)]
    codes = ["".join(rng.choice(list("abcd"), 2)) for _ in names]

    def counts(shown, without=None):
        rows = [(n, c) for n, c in zip(names, codes, strict=True) if n != without]
        table = pa.table({"id": [n for n, _ in rows], "code": [c for _, c in rows]})
        return held(schema, table, shown)

    several = frozenset(text for text, units in counts(frozenset())[0].items() if units > 1)
    assert len(several) > 3
    for shown in (frozenset(), several):
        whole = counts(shown)
        for person in sorted(set(names))[::2]:
            for level, less in zip(whole, counts(shown, person), strict=True):
                moved = [level.get(key, 0) - less.get(key, 0) for key in {*level, *less}]
                assert set(moved) <= {0, 1}
                assert sum(moved) <= 2


# --- the exact law ------------------------------------------------------------------------------

SIGMA, TAU = 3.0, 9
UNIVERSE = ("aa", "ab", "b")


@cache
def noisy(count: int, threshold: int) -> tuple[float, ...]:
    """ln P of: hidden, shown as τ, as τ + 1, as more."""
    z = np.arange(-200, 201)
    weight = np.exp(-(z**2) / (2 * SIGMA**2))
    weight /= weight.sum()
    value = count + z
    parts = (value < threshold, value == threshold, value == threshold + 1, value > threshold + 1)
    return tuple(float(np.log(weight[part].sum())) for part in parts)


@cache
def exact_counts(data: tuple[int, ...], shown: frozenset[str]) -> list[dict]:
    schema = Schema.loads(HEAD + CODES)
    rows = [value for value, times in zip(UNIVERSE, data, strict=True) for _ in range(times)]
    return held(schema, pa.table({"code": pa.array(rows, pa.string())}), shown)


def law(data: tuple[int, ...], threshold: int) -> dict[Any, float]:
    """What two levels tell of rows with these counts: which values are shown, and as how common."""
    out: dict[Any, float] = {}

    def outcomes(counts: dict[str, int]) -> Iterator[tuple[tuple, float]]:
        laws = [noisy(counts[text], threshold) for text in sorted(counts)]
        for picks in itertools.product(range(4), repeat=len(laws)):
            seen = tuple((t, p) for t, p in zip(sorted(counts), picks, strict=True) if p)
            yield seen, sum(own[p] for own, p in zip(laws, picks, strict=True))

    first = exact_counts(data, frozenset())[0]
    for seen, chance in outcomes(first):
        shown = frozenset(text for text, _ in seen)
        for later, more in outcomes(exact_counts(data, shown)[1]):
            out[seen, later] = chance + more
    return out


def zcdp_delta(rho: float, epsilon: float) -> float:
    a = 1 + np.exp(np.linspace(-6, 8, 20_001))
    return float(
        np.exp(np.min((a - 1) * (a * rho - epsilon) - np.log(a - 1) + a * np.log1p(-1 / a)))
    )


PAIRS = [
    (data, tuple(c + (i == j) for j, c in enumerate(data)))
    for data in ((8, 8, 0), (0, 1, 0), (7, 0, 8))
    for i in range(3)
]


@pytest.mark.parametrize("epsilon", [0.25, 0.5, 1.0, 2.0])
def test_two_levels_are_as_private_as_both_charges_say(epsilon):
    """ρ = 2/(2σ²) = 1/9, δ = 2·Φ̄((τ − 2)/σ) = 0.0196, beside what ρ-zCDP gives at ε."""
    event = Discovery(SIGMA, TAU)
    assert 2 * event.delta == pytest.approx(0.0196, abs=1e-4)
    delta = 2 * event.delta + zcdp_delta(2 * cost(event), epsilon)
    seen = check(lambda data: law(data, TAU), PAIRS, epsilon_delta=(epsilon, delta))
    assert seen.pairs == 9
    assert seen.delta > 0


def test_a_lower_threshold_breaks_it():
    event = Discovery(SIGMA, TAU)
    delta = 2 * event.delta + zcdp_delta(2 * cost(event), 2.0)
    with pytest.raises(PrivacyViolation):
        check(lambda data: law(data, 3), PAIRS, epsilon_delta=(2.0, delta))


def test_a_value_of_one_row_alone_changes_the_law_by_delta_at_most():
    """ "b" begins nothing else: it is shown as itself or as its prefix, each with P(1 + Z ≥ τ)."""
    without, alone = law((8, 8, 0), TAU), law((8, 8, 1), TAU)
    tail = Discovery(SIGMA, TAU).delta
    tells = [chance for out, chance in alone.items() if out not in without]
    assert tells
    assert sum(map(math.exp, tells)) <= 2 * tail
    for out, chance in without.items():  # all else is as likely as before, less that
        assert alone[out] <= chance + 1e-12
    assert compare(without, alone).delta(0.0) <= 2 * tail
