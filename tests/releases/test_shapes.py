"""Releases that find the shape of numbers privately: their charges, their privacy, both verifiers."""

import contextlib
import json
import shutil
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import understudy as us
from tests.exact_privacy import (
    PrivacyViolation,
    check,
    discrete_gaussian_law,
    neighbours,
    product_law,
)
from tests.thorough import some
from tests.tools.both import stranger as verify_release
from understudy.columns.ladder import ROUNDNESS, SHARES, first
from understudy.privacy import accounting
from understudy.privacy.budget import Budget
from understudy.privacy.chain import Entry
from understudy.privacy.cost import Gaussian, Zcdp
from understudy.privacy.gate import Gate
from understudy.privacy.ledger import Ledger
from understudy.privacy.relation import Relation
from understudy.releases import bundle, facts, prepare
from understudy.releases.outline import buys, history
from understudy.releases.verify import verify
from understudy.schema import Schema
from understudy.source import read
from understudy.testing import SeededNoise, StrictCharges

HEAD = "[understudy]\nversion = 1\n"
COLUMNS = """
[[column]]
name = "id"
type = "identifier"

[[column]]
name = "paid"
type = "number"
decimals = 2
lower = 0
upper = 100000

[[column]]
name = "size"
type = "number"

[[column]]
name = "age"
type = "integer"
nullable = true

[[column]]
name = "day"
type = "date"
lower = 2000-01-01
upper = 2030-01-01

[[column]]
name = "ill"
type = "boolean"

[[rule]]
says = "age < 16 implies not ill"
"""
PEOPLE = 'unit = "id"\nmax_rows = 2\n'
ASK = {"epsilon": 6, "delta": "1e-6", "method": "independent"}


def table(rows=3000):
    rng = np.random.default_rng(3)
    age = np.minimum(120, rng.gamma(4, 11, rows)).astype(int)
    return pa.table(
        {
            "id": pa.array([f"p{i}" for i in rng.integers(0, rows // 2, rows)]),
            "paid": np.round(rng.lognormal(5, 1, rows), 2),
            "size": rng.normal(170, 10, rows),
            "age": pa.array(age, mask=rng.random(rows) < 0.1),
            "day": pa.array(np.datetime64("2015-01-01") + rng.integers(0, 3000, rows)),
            "ill": (age >= 16) & (rng.random(rows) < 0.3),
        }
    )


@pytest.mark.parametrize(
    ("head", "choices"),
    [(HEAD, {}), (HEAD + PEOPLE, {"neighbours": "replace", "rows_public": 2500})],
    ids=["rows", "people, replace"],
)
def test_shapes_are_found_and_the_whole_is_verified(tmp_path, head, choices):
    declared = Schema.loads(head + COLUMNS)
    made = us.release(table(), declared, **ASK, **choices)
    assert made.schema.illegal(made.rows) == []
    saved = made.save(tmp_path / "out")  # both verifiers look at it
    assert verify(saved).passed
    kinds = [
        e["kind"] for e in json.loads((saved / "release.json").read_text())["ledger"]["entries"]
    ]
    assert kinds.index("refine") == 1 + len(SHARES) + 1  # after the levels and the round values
    again = us.Release.load(saved)
    assert again.schema == made.schema
    for name in ("paid", "size", "age", "day"):
        assert made.schema.column(name).shape is not None
    age = made.schema.column("age")
    assert 16 in age.edges  # the rule needs it


@cache
def large():
    schema = Schema.loads(HEAD + COLUMNS)
    return us.release(table(20_000), schema, noise=SeededNoise(2), key=1, **ASK)


def test_numbers_come_back_with_their_shape():
    rows, made = table(20_000), large()
    for name, near in (("paid", 0.05), ("size", 0.01), ("age", 0.03)):
        real, own = (np.array(t[name].drop_null(), float) for t in (rows, made.rows))
        assert abs(own.mean() / real.mean() - 1) < near
        assert abs(own.std() / real.std() - 1) < 0.2
        ranks = np.searchsorted(np.sort(own), np.sort(real), side="right") / len(own)
        assert np.abs(ranks - np.arange(1, len(real) + 1) / len(real)).max() < 0.04
    assert min(made.rows["paid"].to_pylist()) >= 0


def test_an_answer_between_edges_is_an_estimate_inside_certified_bounds():
    made = large()
    edges = made.schema.column("size").edges
    at = (edges[3] + edges[4]) / 2
    found = made.answer(f"size < {at}")
    truth = np.mean(np.array(table(20_000)["size"]) < at)
    assert found.low <= truth <= found.high
    assert found.low < found.estimate < found.high
    assert abs(found.estimate - truth) < 0.03
    assert found.high - found.low > 0.5 * np.mean(
        made.schema.column("size").encode(made.rows["size"]) == 3
    )  # the cell that is cut counts for both ends: its inside is not certified


def test_special_values_stand_beside_the_shape(tmp_path):
    """A text, a value far from the others, and zero, which would be a cell by itself."""
    schema = Schema.loads(
        HEAD + '[[column]]\nname = "x"\ntype = "integer"\nlower = 0\nupper = 100000\n'
        'special = ["N", 99999, 0]\nnullable = true\n'
    )
    rng = np.random.default_rng(5)
    own = np.maximum(1, rng.lognormal(6, 1, 4000)).astype(int).astype(str).astype(object)
    own[:900] = rng.choice(["N", "99999", "0", None], 900)
    made = us.release(pa.table({"x": pa.array(own, pa.string())}), schema, **ASK)
    assert verify(made.save(tmp_path / "out")).passed
    column = made.schema.column("x")
    assert column.special == ("N", 99999, 0)
    found = made.rows["x"].to_pylist()
    for value in ("N", "99999", "0", None):  # of 225 rows each, with noise of some 20
        assert abs(found.count(value) / len(found) - 225 / 4000) < 0.05
    numbers = np.array([int(x) for x in found if x not in ("N", "99999", "0", None)])
    real = np.array([int(x) for x in own[900:]])
    assert abs(np.median(numbers) / np.median(real) - 1) < 0.3


# --- charges ------------------------------------------------------------------------------------


def test_every_level_is_planned_and_inside_the_epsilon():
    for head in (HEAD, HEAD + PEOPLE):
        schema = Schema.loads(head + COLUMNS)
        k = 1 if schema.unit is None else schema.unit.max_rows
        ready = prepare(schema, epsilon=1)
        assert 0.9 < accounting.epsilon(ready.plan, ready.budget.delta, k).epsilon <= 1
        costs = {c.purpose: accounting.rho(c.event) * k**2 / ready.rho for c in ready.plan}
        assert list(costs) == [*facts.LEVELS, facts.ROUND, facts.REST]
        for name, share in zip(facts.LEVELS, SHARES, strict=True):
            assert float(costs[name]) == pytest.approx(0.05 * share * 4, rel=1e-9)
        # Doubles and days have no round values; what is not spent on them is spent later.
        assert float(costs[facts.ROUND]) == pytest.approx(0.05 * ROUNDNESS * 2, rel=1e-9)
        assert float(sum(costs.values())) == pytest.approx(1, rel=1e-9)
        assert all(buys(charge) for charge in ready.plan)


def test_a_forecast_is_for_the_usual_number_of_cells():
    ready = prepare(Schema.loads(HEAD + COLUMNS), epsilon=1)
    few, many = (ready.forecast(rows).errors.mean for rows in (2_000, 200_000))
    assert many < few
    most = ready.method.errors(ready.design, ready.game_plan, 2_000).mean
    assert few < most  # planned for 48 cells each


def test_many_open_columns_share_a_fifth():
    one = '[[column]]\nname = "x"\ntype = "number"\n'
    schema = Schema.loads(HEAD + "".join(one.replace("x", f"x{i}") for i in range(30)))
    ready = prepare(schema, epsilon=1, workload="marginals:1")
    rest = ready.plan[facts.REST].event
    assert isinstance(rest, Zcdp)
    assert rest.rho / float(ready.rho) == pytest.approx(1 - 0.2 * (1 - ROUNDNESS), rel=1e-6)


# --- privacy ------------------------------------------------------------------------------------

TINY = Schema.loads(
    HEAD + '[[column]]\nname = "x"\ntype = "integer"\nlower = 0\nupper = 2000\nnullable = true\n'
    '[[column]]\nname = "y"\ntype = "integer"\nlower = 0\nupper = 9\nbins = "shape"\n'
)
UNIVERSE = ((22, 1), (350, 5), (None, 1))
RHO = Fraction(40)


class Enough(BaseException):
    """All that a test wants to know was asked."""


class Branch:
    """Gives out fixed numbers and writes down what noise would have been added to. NOT PRIVATE."""

    private = False

    def __init__(self, given, draws):
        self._given, self._draws, self.drawn = given, draws, []

    def gaussian(self, values, sigma):
        self.drawn.append((np.array(values), sigma))
        if len(self.drawn) == self._draws:
            raise Enough
        return np.asarray(self._given(len(self.drawn) - 1, len(values)), np.int64)


def plan_of(schema, relation):
    return facts.outer_plan(schema, RHO, Fraction(1, 10**6), relation)


def asked(schema, rows, relation, given, draws=99):
    """What was asked and what came of it, where `given` is released whatever the rows are."""
    names = [column.name for column in schema.columns]
    cells = zip(*rows, strict=True) if rows else [()] * len(names)
    data = pa.table(
        {name: pa.array(own, pa.int64()) for name, own in zip(names, cells, strict=True)}
    )
    noise, charges = Branch(given, draws), StrictCharges(plan_of(schema, relation), relation)
    looked, found = facts.look(read(data), schema), None
    with contextlib.suppress(Enough):
        found = facts.found(schema, looked, lambda rows: Gate(rows, charges, relation, noise, 2))
    return noise.drawn, found, charges.charged


def released(seed):
    """A transcript: some cells seem heavy, others empty."""

    def given(at, cells):
        rng = np.random.default_rng([seed, at])
        return np.where(rng.random(cells) < 0.3, rng.integers(20, 90, cells), 0)

    return given


@pytest.mark.parametrize("relation", list(Relation), ids=str)
@pytest.mark.parametrize("seed", [1])
def test_neighbours_are_asked_the_same_and_differ_by_what_is_charged(relation, seed):
    """Given what was released, all levels and round values together: the ρ of the plan, not more."""
    size = 2 if relation is Relation.REPLACE else 1
    pairs = {(tuple(a), tuple(b)) for a, b in neighbours(UNIVERSE, size, relation.value)}
    runs = {rows: asked(TINY, rows, relation, released(seed)) for pair in pairs for rows in pair}
    events = [
        charge.event for charge in plan_of(TINY, relation) if isinstance(charge.event, Gaussian)
    ]
    worst = 0.0
    for a, b in pairs:
        (one, schema, charged), (other, same, also) = runs[a], runs[b]
        assert schema == same  # what follows from released counts does not follow from rows
        assert charged == also
        assert [(len(x), s) for x, s in one] == [(len(x), s) for x, s in other]
        assert [s for _, s in one] == [event.sigma for event in events]
        both = zip(one, other, strict=True)
        cost = sum(((x - y) ** 2).sum() / (2 * s * s) for (x, s), (y, _) in both)
        assert cost <= float(sum(map(accounting.rho, events))) * (1 + 1e-9)
        worst = max(worst, cost)
    assert worst == pytest.approx(float(sum(map(accounting.rho, events))), rel=1e-6)
    assert len(one[1][0]) > len(one[0][0])  # cells were opened


ONE = Schema(TINY.columns[:1])
INSIDE = ((22,), (37,))


class Opening:
    """The count of one cell of the first level, and the cells of the second one that it leads to."""

    reach, inner = range(-12, 50), range(-8, 11)

    def __init__(self, relation, factor=1.0):
        self.relation, self.factor, self.known = relation, factor, {}
        self.cell = int(np.searchsorted(first(ONE.columns[0].scale), 22, side="right")) - 1
        plan = plan_of(ONE, relation)
        self.rho = float(sum(accounting.rho(plan[name].event) for name in facts.LEVELS[:2]))

    def branches(self, rows):
        """{look: [(exact values, sigma) of both levels]}, where `look` is released of the cell."""

        def given(look):
            return lambda _, cells: np.where(np.arange(cells) == self.cell, look, 0)

        if rows not in self.known:
            self.known[rows] = {
                look: asked(ONE, rows, self.relation, given(look), 2)[0] for look in self.reach
            }
        return self.known[rows]

    def law(self, rows):
        """Of the cell and of those that may hold rows on the next level; others are alike for all."""
        law = {}
        for look, ((exact, sigma), (counts, noise)) in self.branches(rows).items():
            held = np.flatnonzero(self.branches(INSIDE)[look][1][0])
            one = discrete_gaussian_law(
                int(exact[self.cell]), self.factor * sigma, self.reach, tails="lumped"
            )
            more = [
                discrete_gaussian_law(
                    int(counts[i]), self.factor * noise, self.inner, tails="lumped"
                )
                for i in held
            ]
            law |= {(look, *out): one[look] + p for out, p in product_law(*more).items()}
        return law | {end: p for end, p in one.items() if not isinstance(end, int)}


@pytest.mark.parametrize("relation", some(Relation, 2), ids=str)
def test_a_level_and_the_one_that_it_leads_to_keep_their_charges_output_by_output(relation):
    """Every output of an opened cell and its parts, on all neighbours of a universe of two values."""
    size = 2 if relation is Relation.REPLACE else 1
    every = neighbours(INSIDE, size, relation.value)
    pairs = sorted({(tuple(sorted(a)), tuple(sorted(b))) for a, b in every})
    loop = Opening(relation)
    sizes = {len(cells[1][0]) for cells in loop.branches(INSIDE).values()}
    assert len(sizes) > 1  # the first count decides whether the cell is opened
    report = check(loop.law, pairs, rho=loop.rho)
    # Replaced inside one cell, a row moves nothing on the first level.
    assert report.rho > (0.95 if relation is Relation.ADD_REMOVE else 0.3) * loop.rho
    half = Opening(relation, 0.5)
    with pytest.raises(PrivacyViolation):
        check(half.law, pairs, rho=report.rho)


# --- interrupted and forged ---------------------------------------------------------------------


@pytest.mark.parametrize("draws", [2, 6])
def test_a_killed_release_goes_on_from_the_level_it_had_reached(tmp_path, monkeypatch, draws):
    schema = Schema.loads(HEAD + COLUMNS)
    ask, seen = Gate.ask, []

    def killed(gate, purpose, question, event=None):
        if len(seen) == draws:
            raise KeyboardInterrupt
        seen.append((purpose, ask(gate, purpose, question, event)))
        return seen[-1][1]

    again = {**ASK, "checkpoint": tmp_path / "c", "key": 1}
    with Ledger(tmp_path / "l") as ledger:
        ledger.open_dataset("t", Budget.of(9, "1e-5"), composition="basic")
    kept = {"ledger": tmp_path / "l", "dataset": "t"}
    monkeypatch.setattr(Gate, "ask", killed)
    with pytest.raises(KeyboardInterrupt):
        us.release(table(), schema, **again, **kept)
    told, draws = list(seen), -1
    seen.clear()
    made = us.release(table(), schema, **again, **kept)
    monkeypatch.undo()
    for (purpose, before), (same, now) in zip(told, seen, strict=False):
        assert purpose == same
        assert all(np.array_equal(a, b) for a, b in zip(before, now, strict=True))
    with Ledger(tmp_path / "l") as ledger:
        (line,) = history(ledger, "t")
    assert line["planned"] == len(line["charges"]) == sum(charge.times for charge in made.plan)
    assert verify(made.save(tmp_path / "out")).passed


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    made = us.release(table(), Schema.loads(HEAD + COLUMNS), **ASK)
    return made.save(tmp_path_factory.mktemp("shapes") / "out")


@pytest.mark.parametrize(
    "change",
    [
        lambda own: own["reserve"]["plan"][0]["event"].update(sigma=3.0),
        lambda own: own["reserve"]["plan"].pop(5),
        lambda own: own["reserve"]["plan"][1]["event"].update(changes=1),
    ],
)
def test_charges_of_levels_cannot_be_restated(tmp_path, whole, change):
    saved = Path(shutil.copytree(whole, tmp_path / "out"))
    manifest = json.loads((saved / "release.json").read_text())
    entries = manifest["ledger"]["entries"]
    change({entry["kind"]: entry["body"] for entry in entries})
    prev, forged = entries[0]["prev"], []
    for entry in entries:
        forged.append(Entry.make(entry["seq"], entry["kind"], entry["body"], prev))
        prev = forged[-1].hash
    manifest["ledger"]["entries"] = [entry.to_json() for entry in forged]
    manifest["digest"] = bundle.digest(manifest)
    (saved / "release.json").write_bytes(bundle.manifest_bytes(manifest))
    assert not verify(saved).passed  # the other verifier is asked too, and must agree


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("weights = [", "weights = [1, "),
        ("roundness = [", "roundness = [1, "),
        ("rests = [", "rests = [1, "),
        ("leaves = [\n    ", "leaves = [\n    -5, "),
        ("edges = [", "edges = [-7, "),
    ],
)
def test_a_shape_that_cannot_have_been_found(tmp_path, whole, old, new):
    """By the standalone program, which reads the schema for itself."""
    saved = Path(shutil.copytree(whole, tmp_path / "out"))
    assert list(verify_release.closing_problems(verify_release.Bundle(saved))) == []
    text = (saved / "schema.toml").read_text()
    (saved / "schema.toml").write_text(text.replace(old, new, 1))
    forged = verify_release.Bundle(saved)
    assert any("'paid'" in problem for problem in verify_release.closing_problems(forged))


def test_what_a_release_counted_on_the_way_tells_that_release_alone():
    found, asked = large().schema, {"epsilon": 6, "delta": "1e-6"}
    shaped = [column.kind in ("number", "integer", "date") for column in found.modelled]
    told = prepare(Schema.loads(HEAD + COLUMNS), **asked).refined(found).design.told
    assert [bool(each) for each in told] == shaped
    rows, size = table(20_000)["age"].drop_null().to_numpy(), found.column("age")
    (counts, variance), edges = np.array(told[2]).T, [*size.edges[:-1], np.inf]
    assert np.abs(counts - np.histogram(rows, edges)[0]).max() < 4 * np.sqrt(variance.max())
    assert not any(prepare(found, **asked).design.told)
    assert "told" not in found.dumps()
