"""Rules that a draft proposes: those that hold by more than accident, few, and without rare values."""

import time

import numpy as np
import pyarrow as pa
import pytest

from tests.tools.survey import BARE, CUTS, RULED, survey
from understudy.draft import confirm, draft
from understudy.draft.rules import confirm_rules, proposed
from understudy.errors import UnconfirmedError
from understudy.schema import Schema


@pytest.fixture(scope="module")
def found():
    return proposed(survey(20_000), BARE)


def test_the_structure_of_a_survey(found):
    says = [rule.says for rule in found]
    assert "income = wages + other" in says
    assert "industry determines sector" in says
    assert "bedrooms <= rooms" in says
    assert "moved_in <= asked" in says
    assert any(s.startswith("age < 15 implies") and "marital = 'N'" in s for s in says)
    assert any(s.startswith("age < 3 implies") and "school = 'N'" in s for s in says)
    assert len(found) <= 15
    assert all(rule.read_from_rows for rule in found)


def test_all_hold_and_fit(found):
    """Every proposal is kept by every row it was read from, and a schema takes them as they are."""
    schema = Schema(BARE.columns, rules=found)
    assert schema.illegal(survey(20_000).cast(schema.arrow_schema)) == []
    with pytest.raises(UnconfirmedError, match="income = wages"):
        schema.require_confirmed()
    confirm_rules(schema).require_confirmed()


def test_thresholds_where_a_band_follows():
    table = survey(20_000).drop_columns(["wages", "other"])
    columns = tuple(c for c in BARE.columns if c.name not in ("wages", "other"))
    # Edges where the bands change.
    from dataclasses import replace

    cut = {"income": replace(BARE.column("income"), edges=(0, 1, *CUTS, 250_000))}
    rules = proposed(table, Schema(columns).resolved(cut))
    (band,) = [rule for rule in rules if rule.target == "band"]
    assert band.says == "income determines band"
    assert band.cuts == CUTS


def test_nothing_is_found_in_noise():
    """Independent columns, most of them lopsided: forty of them have no rule at all."""
    rng = np.random.default_rng(4)
    columns = {f"c{i}": rng.choice(list("abcd"), 5000, p=[0.7, 0.2, 0.08, 0.02]) for i in range(20)}
    columns |= {f"n{i}": rng.integers(0, 1000, 5000) for i in range(10)}
    columns |= {f"f{i}": rng.normal(size=5000).round(2) for i in range(10)}
    table = pa.table(columns)
    assert proposed(table, Schema(draft(table).columns)) == ()


def test_rare_values_are_not_listed():
    rng = np.random.default_rng(5)
    codes = np.concatenate([rng.integers(0, 10, 5000), [10, 11]])
    zips = np.array([f"z{i}" for i in range(12)])[codes]
    table = pa.table({"zip": zips, "city": np.array([f"c{i // 3}" for i in range(12)])[codes]})
    text = '[understudy]\nversion = 1\n[[column]]\nname = "zip"\ntype = "category"\nvalues = '
    text += '"discover"\n[[column]]\nname = "city"\ntype = "category"\nvalues = "discover"\n'
    (rule,) = proposed(table, Schema.loads(text))
    assert rule.says == "zip determines city"
    assert {key for key, _ in rule.mapping} == {f"z{i}" for i in range(10)}
    assert rule.default == "OTHER"


def test_few_rows_tell_nothing():
    assert proposed(survey(80), BARE) == ()


@pytest.mark.slow
def test_fast_on_a_wide_table():
    """Fifty columns and 100,000 rows: a few seconds; ten times as long would be too slow."""
    rng = np.random.default_rng(6)
    columns = {f"c{i}": rng.integers(0, 8, 100_000) for i in range(30)}
    columns |= {f"x{i}": rng.integers(0, 10**6, 100_000) for i in range(20)}
    text = "[understudy]\nversion = 1\n"
    for name in columns:
        upper = 7 if name[0] == "c" else 10**6
        bins = "" if name[0] == "c" else "bins = 10\n"
        text += f'[[column]]\nname = "{name}"\ntype = "integer"\nlower = 0\nupper = {upper}\n{bins}'
    start = time.process_time()
    proposed(pa.table(columns), Schema.loads(text))
    assert time.process_time() - start < 30


def test_confirmed_or_dropped(found):
    schema = Schema(BARE.columns, rules=found)
    less = schema.with_rules([rule for rule in found if rule.says != "income = wages + other"])
    assert "income" in [column.name for column in less.modelled]
    assert "income" not in [column.name for column in schema.modelled]
    assert not any(rule.read_from_rows for rule in confirm(less).rules)
    assert any(rule.read_from_rows for rule in confirm(less, ["age"]).rules)


def test_the_survey_is_what_it_says():
    assert RULED.illegal(survey(3000).cast(RULED.arrow_schema)) == []


def test_a_draft_has_them(found):
    rules = {rule.says for rule in draft(survey(20_000)).rules}
    assert {"income = wages + other", "industry determines sector"} <= rules
