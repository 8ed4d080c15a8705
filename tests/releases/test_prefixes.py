"""Codes with parents, found privately level after level inside the ε."""

import math
from fractions import Fraction
from functools import cache

import numpy as np
import pyarrow as pa
import pytest

import understudy as us
from tests.exact_privacy import PrivacyViolation, check, product_law, unit_neighbours
from tests.thorough import examples
from understudy.columns.unmodelled import Level
from understudy.errors import SchemaError
from understudy.privacy import accounting
from understudy.privacy.cost import Discovery
from understudy.privacy.sensitive import reveal
from understudy.releases import facts, prepare
from understudy.releases.verify import verify
from understudy.schema import Category, Schema, UndeclaredCategory
from understudy.source import read
from understudy.source.values import Holders
from understudy.testing.stand_ins import StillNoise

TEXT = """
[understudy]
version = 1
UNIT
[[column]]
name = "who"
type = "identifier"
[[column]]
name = "icd"
type = "category"
values = "discover"
prefixes = [3, 1]
max_values = 16
nullable = true
"""
ROWS = Schema.loads(TEXT.replace("UNIT", ""))
PEOPLE = Schema.loads(TEXT.replace("UNIT", 'unit = "who"\nmax_rows = 2'))
ASK = {"epsilon": 6, "delta": "1e-6", "method": "independent"}


def table(rows=4000):
    rng = np.random.default_rng(0)
    codes = [f"250.{i:02d}" for i in range(40)] + ["401.9", "428.0"] + [f"E{i}" for i in range(300)]
    shares = np.array([1.0] * 40 + [60, 40] + [0.2] * 300)
    return pa.table(
        {
            "who": [f"p{i}" for i in rng.integers(0, rows // 2, rows)],
            "icd": rng.choice(codes, rows, p=shares / shares.sum()),
        }
    )


@pytest.mark.parametrize("schema", [ROWS, PEOPLE], ids=["rows", "people"])
def test_rare_codes_fall_to_their_parents_and_both_verifiers_accept_it(tmp_path, schema):
    made = us.release(table(), schema, **ASK)
    found = made.schema.columns[1]
    # 1,700 rows of 401.9, 500 of E and other digits: far above any threshold with its noise.
    assert {"401.9", "428.0", "250*", "E*"} <= set(found.values)
    assert found.prefixes == (3, 1)
    assert set(made.rows["icd"].to_pylist()) <= {*found.values, "OTHER", None}
    assert made.others["icd"] < 0.05
    saved = made.save(tmp_path / "r")
    assert verify(saved).passed
    assert us.Release.load(saved).schema == made.schema


@pytest.mark.parametrize("schema", [ROWS, PEOPLE], ids=["rows", "people"])
def test_all_levels_cost_what_one_column_costs(schema):
    ready = prepare(schema, epsilon=1)
    names = [facts.purpose("icd", length) for length in (0, 3, 1)]
    assert [charge.purpose for charge in ready.plan][:3] == names
    cost = sum((accounting.rho(ready.plan[name].event) for name in names), Fraction(0))
    alone = Schema((UndeclaredCategory("icd", values="discover"),), unit=None)
    one = prepare(alone, epsilon=1).plan
    assert float(cost) == pytest.approx(float(accounting.rho(one[facts.purpose("icd")].event)))
    k = 1 if schema.unit is None else schema.unit.max_rows
    assert accounting.epsilon(ready.plan, ready.budget.delta, k).epsilon <= 1
    assert accounting.total_delta(ready.plan) <= ready.budget.delta / 10


def test_levels_ask_about_what_remains():
    rows = pa.table(
        {
            "who": ["a", "a", "a", "b", "b", "c", "c", None],
            "icd": ["2501", "2502", "2503", "2501", "25", "E1", "OTHER", "2501"],
        }
    )
    level = Level(3, ((0, ("2503", "OTHER")),))
    texts, counts = reveal(Holders(read(rows), ROWS).at(level).holders("icd"))
    assert dict(zip(texts, counts.tolist(), strict=True)) == {"250": 4}
    texts, counts = reveal(Holders(read(rows), PEOPLE).at(level).holders("icd"))
    assert dict(zip(texts, counts.tolist(), strict=True)) == {"250": 2}  # people, not their rows
    last = Level(1, ((0, ("2503", "OTHER")), (3, ("250",))))
    texts, counts = reveal(Holders(read(rows), ROWS).at(last).holders("icd"))
    assert dict(zip(texts, counts.tolist(), strict=True)) == {"2": 1, "E": 1}


@pytest.mark.parametrize("taken", [(), ("11", "22", "OTHER")])
@pytest.mark.parametrize("length", [0, 1, 2])
def test_one_person_moves_at_most_k_counts_by_one_at_every_level(length, taken):
    rng = np.random.default_rng(1)
    who = rng.integers(0, 20, 300).astype(str)
    codes = np.array([f"{a}{b}" for a, b in rng.integers(0, 5, (300, 2))])
    level = Level(length, ((0, taken),))

    def holders(keep):
        rows = pa.table({"who": who[keep], "icd": codes[keep]})
        texts, counts = reveal(Holders(read(rows), PEOPLE).at(level).holders("icd"))
        return dict(zip(texts, counts.tolist(), strict=True))

    everybody = holders(np.ones(300, bool))
    for person in map(str, range(0, 20, examples(4, 1))):
        fewer = holders(who != person)
        moved = [everybody.get(text, 0) - fewer.get(text, 0) for text in {*everybody, *fewer}]
        assert set(moved) <= {0, 1}
        assert sum(moved) <= 2


def test_what_was_found_is_what_is_encoded():
    """The counts that a level was asked about are those of its cells."""
    rows = table(1000)
    schema = ROWS
    column = schema.columns[1]
    holders = Holders(read(rows), schema)
    levels = []
    for _ in column.levels:
        texts, counts = reveal(holders.at(column.level(levels)).holders("icd"))
        order = np.argsort(-counts, kind="stable")[: column.most(levels)]
        levels.append(tuple(texts[i] for i in order if counts[i] >= 10))
    closed = column.found(*levels)
    assert column.admits(closed)
    counted = np.bincount(closed.encode(rows["icd"]), minlength=closed.size)
    for length, found in zip(column.levels, levels, strict=True):
        level = column.level(levels[: column.levels.index(length)])
        held = dict(zip(*map(list, reveal(holders.at(level).holders("icd"))), strict=True))
        for text in found:
            label = f"{text}*" if length else text
            assert counted[closed.values.index(label)] == held[text]


@pytest.mark.parametrize(
    ("values", "fits"),
    [
        (("250*", "401.9", "E*"), True),
        (tuple(f"{i:03d}x" for i in range(9)), False),  # half of 16 are codes
        (tuple(f"{i:03d}*" for i in range(8)), True),
        (tuple(f"{i:03d}*" for i in range(9)), False),
        (tuple(sorted(f"{c}*" for c in "abcdefghijklmnop")), True),
        (("E*", "401.9"), False),  # in the order of the alphabet
    ],
)
def test_what_may_have_been_found(values, fits):
    column = ROWS.columns[1]
    parents = any(value.endswith("*") for value in values)
    prefixes = (3, 1) if parents else ()
    closed = Category("icd", values, "OTHER", prefixes=prefixes, dtype="string", nullable=True)
    assert column.admits(closed) == fits


def test_a_value_that_looks_like_a_parent_is_none():
    column = ROWS.columns[1]
    assert column.kept(["250*", "E*", "12*", "OTHER", "x"]) == ("12*", "x")
    assert column.found(["250*", "x"]).values == ("x",)
    assert column.found(["250*"]).values == ("OTHER",)


def test_seeded_releases_do_not_hold_rare_codes():
    """Without noise, what fewer hold than a threshold says is shown at no level."""
    rows = table()
    rare = pa.table({"who": ["x"], "icd": ["ZZZ.9"]})
    made = us.release(pa.concat_tables([rows, rare]), ROWS, noise=StillNoise(), key=1, **ASK)
    assert not any("Z" in str(value) for value in made.schema.columns[1].values)
    events = [charge.event for charge in made.plan if isinstance(charge.event, Discovery)]
    least = min(event.threshold for event in events)
    counted = np.bincount(made.schema.columns[1].encode(rows["icd"]))
    assert all(n >= least for n in counted[: len(made.schema.columns[1].values)])


def test_a_killed_release_goes_on_with_the_levels_that_it_found(tmp_path):
    stopped = []

    def stop(progress):
        if progress.stage == "sampling" and not stopped:
            stopped.append(progress)
            raise KeyboardInterrupt

    again = {**ASK, "checkpoint": tmp_path / "c", "key": 1}
    with pytest.raises(KeyboardInterrupt):
        us.release(table(), PEOPLE, progress=stop, **again)
    made = us.release(table(), PEOPLE, **again)
    assert verify(made.save(tmp_path / "out")).passed


@pytest.mark.parametrize(
    ("facts_", "said"),
    [
        ("prefixes = [1, 3]", "longest first"),
        ("prefixes = [0]", "longest first"),
        ("prefixes = 3", "longest first"),
        ('prefixes = [3, 1]\nother = "O*"', "looks like a parent"),
        ("prefixes = [3, 1]\nmax_values = 3", "at least 4"),
        ('prefixes = [3, 1]\nnull_values = ["E*"]', "stands for null"),
    ],
)
def test_prefixes_that_cannot_be(facts_, said):
    text = TEXT.replace("prefixes = [3, 1]\nmax_values = 16", facts_).replace("UNIT", "")
    with pytest.raises(SchemaError, match=said):
        Schema.loads(text)


def test_a_declared_list_with_parents():
    column = Category("icd", ("250.1", "250*", "4*"), "OTHER", prefixes=(3, 1), nullable=True)
    given = pa.array(["250.1", "250.2", "250", "25", "4", "41", "9", None, "", "250*"])
    wanted = ["250.1", "250*", "250*", "OTHER", "4*", "4*", "OTHER", "NULL", "NULL", "250*"]
    assert [column.labels()[code] for code in column.encode(given)] == wanted
    assert column.encode(pa.array(["4x"]), ["4x"]).tolist() == [4]  # null before a parent
    assert column.encode(pa.array([250, 41])).tolist() == [1, 2]
    assert column.legal(pa.array(["250.1", "250*", "250.2"])).tolist() == [True, True, False]
    assert not column.misfits(pa.array(["250.2"]))["outside"].any()
    with pytest.raises(SchemaError, match="no value is a parent"):
        Category("icd", ("250.1",), prefixes=(3,))
    with pytest.raises(SchemaError, match="is for texts"):
        Category("icd", (1, 2), prefixes=(3,))


# --- the whole of it, exactly -------------------------------------------------------------------

CODES = {"a": "2a", "b": "2b", "c": "3"}


def shown(count, event):
    """P(count + Z ≥ threshold), exactly."""
    reach = np.arange(-100, 101)
    mass = np.exp(-(reach**2) / (2 * event.sigma**2))
    return float(mass[reach >= event.threshold - count].sum() / mass.sum())


def law(event, column, schema):
    """The exact law of what two levels show, by the source's own counts."""

    def independent(texts, counts):
        parts = []
        for text, count in zip(texts, counts, strict=True):
            p = shown(int(count), event)
            parts.append({(text,): math.log(p), (): math.log1p(-p)})
        joint = product_law(*parts) if parts else {((),): 0.0}
        return {tuple(sorted(sum(out, ()))): log for out, log in joint.items()}

    def mechanism(data):
        found = {}
        for values, one in independent(*held(data, schema, column.level([]))).items():
            second = independent(*held(data, schema, column.level([values])))
            found |= {(values, heads): one + two for heads, two in second.items()}
        return found

    return lambda data: mechanism(tuple(sorted(data)))


@cache
def held(data, schema, level):
    who, codes = [str(name) for name, _ in data], [CODES[code] for _, code in data]
    rows = pa.table({"who": pa.array(who, pa.string()), "icd": pa.array(codes, pa.string())})
    return reveal(Holders(read(rows), schema).at(level).holders("icd"))


@pytest.mark.parametrize(
    "relation", ["add-remove", pytest.param("replace", marks=pytest.mark.slow)]
)
def test_two_levels_are_as_private_as_the_account_says(relation):
    text = TEXT.replace("[3, 1]", "[1]").replace("UNIT", 'unit = "who"\nmax_rows = 2')
    schema = Schema.loads(text)
    column, sides = schema.columns[1], 1 if relation == "add-remove" else 2
    event, delta = Discovery(1.5, 8, values=2, sides=sides), 1e-2
    epsilon = accounting.epsilon([event, event], delta, 2).epsilon
    pairs = list(dict.fromkeys(unit_neighbours("abc", 2, 3, relation)))
    pairs = pairs[:: max(1, len(pairs) // (examples(4, 8) if sides == 1 else 60))]
    report = check(law(event, column, schema), pairs, epsilon_delta=(epsilon, delta))
    assert report.delta > 0
    low = Discovery(1.5, 2, values=2, sides=sides)  # the broken twin: one holder is enough
    with pytest.raises(PrivacyViolation):
        check(law(low, column, schema), pairs, epsilon_delta=(epsilon, delta))
