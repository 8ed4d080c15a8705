"""Public rules: what they forbid, how rows are mended, and which cannot be."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.thorough import examples
from tests.tools.residents import CHILDREN, COLUMNS, MAPPING, PLACES
from understudy.columns import Category, Integer
from understudy.constraints.rule import Rule
from understudy.errors import SchemaError
from understudy.schema import Schema


def schema(*says, mapping=PLACES):
    base = Schema.loads(COLUMNS)
    rules = tuple(
        Rule(each, tuple(mapping.items()) if "determines" in each else ()) for each in says
    )
    return Schema(base.columns, rules=rules)


def everything(known):
    """Every combination of codes."""
    grid = np.meshgrid(*(np.arange(size, dtype=np.uint8) for size in known.shape), indexing="ij")
    return [axis.reshape(-1) for axis in grid]


ALL = (
    CHILDREN,
    "zip determines city",
    "not (retired and age < 65)",
    """"marital status" = 'widowed' implies age >= 30 and city <> 'Ulm'""",
    "retired implies zip <> '89073'",
)


@pytest.mark.parametrize("count", range(1, len(ALL) + 1))
def test_every_mended_row_keeps_every_rule(count):
    known = schema(*ALL[:count])
    codes = everything(known)
    mended = known.project(codes)
    broken, rules = known._rules.broken(codes), known._rules
    assert broken.any()
    assert not rules.broken(mended).any()
    # Rows that broke nothing are as they were, and mended rows have their types.
    for before, after in zip(codes, mended, strict=True):
        assert after.dtype == before.dtype
        assert (after[~broken] == before[~broken]).all()
    assert (np.stack(mended)[:, broken] != np.stack(codes)[:, broken]).any(axis=0).all()


def test_values_keep_the_rules_too():
    """By the values of decoded rows, not by codes: cells hold many values."""
    known = schema(*ALL)
    rng = np.random.default_rng(0)
    codes = [rng.integers(0, size, 3000).astype(np.uint8) for size in known.shape]
    rows = known.decode(codes, rng)
    assert known.illegal(rows) == []
    for age, status, zip_, city, retired in zip(*(c.to_pylist() for c in rows), strict=True):
        assert age >= 16 or status == "never"
        assert PLACES.get(zip_, city) == city
        assert not (retired and age < 65)
        assert not (retired and zip_ == "89073")
    bare = Schema.loads(COLUMNS)
    broken = known.illegal(bare.decode(codes, rng))
    assert len(broken) == len(ALL)
    assert "rows break the rule" in broken[0]


def test_the_nearest_row_is_taken():
    known = schema(CHILDREN, "zip determines city")
    names = [column.name for column in known.modelled]

    def mend(**cells):
        codes = [np.array([cells.get(name.replace(" ", "_"), 0)]) for name in names]
        return dict(zip(names, (int(c[0]) for c in known.project(codes)), strict=True))

    # A married child is unmarried, not grown up; a wrong city is corrected, not the zip code.
    assert mend(age=0, marital_status=1)["marital status"] == 0
    assert mend(age=0, marital_status=3)["marital status"] == 0
    assert mend(age=1, marital_status=1)["marital status"] == 1
    assert mend(zip=1, city=2) == mend(zip=1, city=1)
    assert mend(zip=3, city=2)["city"] == 2  # what is OTHER determines nothing


def test_mending_is_the_least_change_of_all():
    """Against brute force over every combination: no legal row has fewer columns changed."""
    known = schema(*ALL)
    codes = np.stack(everything(known))
    rules = known._rules
    legal = codes[:, ~rules.broken(list(codes))]
    mended = np.stack(known.project(list(codes)))
    rng = np.random.default_rng(2)
    for at in rng.choice(codes.shape[1], 60, replace=False):
        least = (legal != codes[:, at][:, None]).sum(axis=0).min()
        assert (mended[:, at] != codes[:, at]).sum() == least


@settings(max_examples=examples(15, 30), deadline=None)
@given(
    rules=st.lists(
        st.tuples(
            st.sampled_from("abc"), st.integers(0, 2), st.sampled_from("abc"), st.integers(0, 2)
        ),
        min_size=1,
        max_size=5,
    )
)
def test_any_rules_are_kept_or_refused(rules):
    columns = "\n".join(
        f'[[column]]\nname = "{n}"\ntype = "integer"\nlower = 0\nupper = 2\n' for n in "abc"
    )
    base = Schema.loads("[understudy]\nversion = 1\n" + columns)
    says = [f"{a} = {x} implies {b} <> {y}" for a, x, b, y in rules]
    combos = np.array(list(itertools.product(range(3), repeat=3))).T
    place = dict(zip("abc", combos, strict=True))
    broken = np.zeros(27, bool)
    for a, x, b, y in rules:
        broken |= (place[a] == x) & (place[b] == y)
    dead = any(not (~broken & (place[a] == x)).any() for a, x, _, _ in rules)

    def made():
        return Schema(base.columns, rules=tuple(Rule(each) for each in says))

    if broken.all() or dead:
        with pytest.raises(SchemaError, match="contradict"):
            made()
        return
    assert (made()._rules.broken(list(combos)) == broken).all()
    assert not made()._rules.broken(made().project(list(combos))).any()


def test_many_large_columns_are_mended_too():
    columns = [Integer(name, 0, 99) for name in "abcd"]
    kinds = [Category(name, ("yes", "no", *"uvwxyz")) for name in ("k", "l")]
    says = ("k = 'yes' implies l = 'yes'", "l = 'yes' implies a > 10", "a <= b", "b <= c", "c < d")
    schema = Schema((*kinds, *columns), rules=tuple(map(Rule, says)))
    rng = np.random.default_rng(0)
    codes = [rng.integers(0, size, 60) for size in schema.shape]
    codes = [np.append(own, odd) for own, odd in zip(codes, (0, 0, 99, 0, 0, 0), strict=True)]
    moved = schema.project(codes)
    assert not schema.illegal(schema.decode(codes, rng))
    kept = ~schema._rules.broken(codes)
    assert all((one[kept] == other[kept]).all() for one, other in zip(codes, moved, strict=True))
    assert all((schema.project(moved)[i] == moved[i]).all() for i in range(len(moved)))


def test_large_columns_are_mended_quickly():
    zips = [f"{i:05d}" for i in range(2000)]
    towns = [f"town {i}" for i in range(150)]
    text = f"""
[understudy]
version = 1
[[column]]
name = "zip"
type = "category"
values = {zips}
[[column]]
name = "city"
type = "category"
values = {towns}
"""
    base = Schema.loads(text.replace("'", '"'))
    mapping = tuple((zip_, towns[i % 150]) for i, zip_ in enumerate(zips))
    known = Schema(base.columns, rules=(Rule("zip determines city", mapping),))
    rng = np.random.default_rng(0)
    codes = [rng.integers(0, size, 50_000).astype(np.uint16) for size in known.shape]
    mended = known.project(codes)
    assert (mended[0] == codes[0]).all()
    assert (mended[1] == codes[0] % 150).all()


def test_rules_are_read_back():
    text = f"""{COLUMNS}
[[rule]]
says = '''{CHILDREN} '''
{MAPPING}"""
    known = Schema.loads(text)
    assert [rule.says for rule in known.rules] == [CHILDREN, "zip determines city"]
    assert Schema.loads(known.dumps()) == known
    assert known.digest() != Schema.loads(COLUMNS).digest()


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        (["age < 20 implies retired"], ["age < 20", "cuts through age = 16..29", "edge"]),
        (["agee < 16"], ["agee", "age"]),
        (["age <"], ["age <"]),
        (["age < 16 implies"], ["implies"]),
        (["age < 16 implies retired implies retired"], ["more than once"]),
        (["zip determines town"], ["town"]),
        (["zip determines zip"], ["itself"]),
        (["'x"], ["never closed"]),
        (["retired", "not retired"], ["contradict"]),
        (
            [CHILDREN, """age < 16 implies "marital status" = 'married'"""],
            ["contradict", "applies"],
        ),
        (["retired implies age < 16", "age < 16 implies not retired"], ["contradict", "applies"]),
    ],
)
def test_rules_that_cannot_be(rules, said):
    with pytest.raises(SchemaError) as caught:
        schema(*rules)
    for part in said:
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ('says = ""', "nothing to say"),
        ("says = 3", "nothing to say"),
        ('say = "age < 16"', "say"),
        ('says = "zip determines city"', "mapping"),
        ('says = "zip determines city"\nmapping = 3', "mapping"),
        ('says = "zip determines city"\nmapping = {"89073" = "Ulm"}', "53111, 50667"),
        ('says = "zip determines city"\nmapping = {"1" = "Ulm"}', "1"),
        ('says = "zip determines city"\nmapping = {"89073" = "Rom"}', "Rom"),
        ('says = "age < 16"\nmapping = {"89073" = "Ulm"}', "mapping belongs"),
    ],
)
def test_tables_that_cannot_be(table, said):
    with pytest.raises(SchemaError, match=said):
        Schema.loads(f"{COLUMNS}\n[[rule]]\n{table}\n")


@pytest.mark.parametrize(
    ("declared", "opened", "says"),
    [
        ('values = ["Ulm", "Bonn", "Köln"]', 'values = "discover"', "retired implies city = 'Ulm'"),
        ("edges = [0, 16, 30, 65, 99]", "bins = {quantiles = 4}", "age < 16 implies not retired"),
    ],
)
def test_a_rule_needs_to_know_the_domain(declared, opened, says):
    text = COLUMNS.replace(declared, opened)
    with pytest.raises(SchemaError, match=r"(city|age)'? .*found privately"):
        Schema.loads(f'{text}\n[[rule]]\nsays = "{says}"\n')
    other = "retired implies zip <> '89073'"
    assert Schema.loads(f'{text}\n[[rule]]\nsays = "{other}"\n').rules
