"""For every question: random requests of a tiny table, and the least event that covers each.

The events are worked out here, from what a neighbour may move, and not taken from the questions. What a
question really hands to its mechanism is read off a noise that writes down what it is given, behind a
real `Gate`.
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np

from tests.exact_privacy import ChoosingNoise, compare, enumerate_transcripts
from understudy.privacy.coarsened import Coarsened
from understudy.privacy.cost import (
    Charge,
    Discovery,
    Gaussian,
    Laplace,
    Perturbation,
    Plan,
    SampledGaussian,
    SampledGroups,
    SampledSelection,
    Selection,
)
from understudy.privacy.exact import Examples
from understudy.privacy.features import Box
from understudy.privacy.gate import Gate
from understudy.privacy.losses import Logistic, Softmax, Squared
from understudy.privacy.products import ProductQueries
from understudy.privacy.questions import (
    BernoulliRejection,
    BestModels,
    Cell,
    CellCounts,
    Critic,
    Degrees,
    Marginals,
    Moments,
    NetworkGradient,
    Payoff,
    PickedCells,
    PickedQueries,
    RowCount,
    ThresholdedErrors,
    TotalVariations,
    Triangles,
    Values,
    WorstCell,
    WorstError,
    WorstErrorOfRows,
    WorstMarginals,
    WorstQueryError,
)
from understudy.privacy.questions.best_models import Models
from understudy.privacy.questions.descent import (
    LinearGradient,
    SteepestVertex,
    TargetLevels,
    Weights,
)
from understudy.privacy.questions.gradient import Groups
from understudy.privacy.questions.moments import RandomFeatures
from understudy.privacy.relation import Relation
from understudy.privacy.sensitive import Sensitive
from understudy.testing.stand_ins import StillNoise, StrictCharges, TinyCounts, table_of
from understudy.units import Unit

SHAPE = (2, 3, 2)
WORDS = 2**32
ROW = 1 << 16  # a row in the units of picked cells, picked queries, coins and payoffs
ROUNDED = ROW + 3  # and what a pick pays for rounding
CLIQUES = tuple(
    clique for size in range(4) for clique in itertools.combinations(range(len(SHAPE)), size)
)


class Broken(AssertionError):
    """A neighbour moved more than is charged."""


# --- tables and their neighbours ----------------------------------------------------------------


@dataclass(frozen=True)
class World:
    """A private table, what is public about it, and two secret words for every row's coins."""

    rows: tuple[Any, ...]
    words: tuple[tuple[int, int], ...]
    relation: Relation
    public: int | None
    shape: tuple[int, ...] = SHAPE
    unit: Unit | None = None

    @property
    def sides(self) -> int:
        return 1 if self.relation is Relation.ADD_REMOVE else 2

    def row(self, rng: Random) -> Any:
        return tuple(rng.randrange(size) for size in self.shape)

    def source(self) -> Any:
        counts = TinyCounts(self.shape, self.rows)
        counts.unit = self.unit
        return counts

    def without(self, at: int) -> "World":
        drop = lambda each: (*each[:at], *each[at + 1 :])  # noqa: E731
        return replace(self, rows=drop(self.rows), words=drop(self.words))

    def exchanged(self, at: int, row: Any) -> "World":
        return replace(self, rows=(*self.rows[:at], row, *self.rows[at + 1 :]))

    def coins(self, question: Any, event: Any) -> list[int]:
        """The words that samplers ask for: which rows are held out, then which are in the sample."""
        held_out = question.held_out if isinstance(question, NetworkGradient | BestModels) else 0.0
        held = [u < held_out * WORDS for u, _ in self.words]
        rate = 1.0 if isinstance(event, Selection | Gaussian | Laplace) else event_rate(event)
        first = [u for u, _ in self.words] if held_out else []
        inside = [v for (_, v), out in zip(self.words, held, strict=True) if not out]
        return first + (inside if rate < 1 else [])


@dataclass(frozen=True)
class Learning(World):
    """Rows of features and a target."""

    def row(self, rng: Random) -> Any:
        features = [rng.choice((-2.0, -1.0, 0.0, 0.3, 1.0, 2.0)) for _ in range(2)]
        return (*features, rng.choice((0.0, 1.0, 2.0)))

    def source(self) -> Any:
        table = np.array(self.rows, np.float64).reshape(len(self.rows), 3)
        return Examples.seal(table[:, :2], table[:, 2], Box.of((-1, 1), 2))


@dataclass(frozen=True)
class Holding(World):
    """Units, or single rows, and the values they hold; `rows` has one tuple of values for each."""

    def row(self, rng: Random) -> Any:
        most = 4 if self.unit is not None else 1
        return tuple(rng.choice("abcde") for _ in range(rng.randint(1, most)))

    def source(self) -> Any:
        counts = TinyCounts(self.shape, ())
        counts.unit = self.unit
        return counts

    @property
    def held(self) -> "Held":
        return Held(self.rows, self.unit)


class Held:
    """Holders as a source counts them: of a unit's own values the first k in order count."""

    def __init__(self, rows: Any, unit: Unit | None) -> None:
        self._rows, self.unit = rows, unit

    def holders(self, column: str) -> Any:
        most = 1 if self.unit is None else self.unit.max_rows
        kept = [sorted(set(values))[:most] for values in self._rows]
        texts = sorted({value for values in kept for value in values})
        counts = [sum(text in values for values in kept) for text in texts]
        return Sensitive((texts, np.array(counts, np.int64)))


def event_rate(event: Any) -> float:
    sampled = isinstance(event, SampledGaussian | SampledGroups | SampledSelection)
    return event.rate if sampled else 1.0


def world(rng: Random, kind: type[World] = World, **more: Any) -> World:
    """A table of one to six rows under either relation, its number of rows public or not."""
    size = rng.randint(1, 6)
    relation = rng.choice((Relation.ADD_REMOVE, Relation.REPLACE))
    public = rng.choice((None, size, size + 1))
    blank = kind((), (), relation, public, **more)
    words = tuple((rng.randrange(WORDS), rng.randrange(WORDS)) for _ in range(size))
    return replace(blank, rows=tuple(blank.row(rng) for _ in range(size)), words=words)


def small(rng: Random) -> World:
    """Few cells, for laws that are enumerated."""
    return world(rng, shape=(2, 2))


def graph(rng: Random) -> World:
    """Edges between four values; often all of them but one."""
    made = world(rng, shape=(4, 4))
    if rng.random() < 0.5:
        edges = list(itertools.combinations(range(4), 2))
        made = replace(made, rows=tuple(edges), words=((0, 0),) * len(edges))
    return made


def learning(rng: Random) -> World:
    return world(rng, Learning, shape=(3,))


def values(rng: Random) -> World:
    unit = rng.choice((None, Unit("who", 1), Unit("who", 2), Unit("who", 3)))
    return world(rng, Holding, shape=(2,), unit=unit)


# --- asking -------------------------------------------------------------------------------------


class CoinNoise(StillNoise):
    """Adds nothing; coins fall as a table's words say."""

    def __init__(self, words: Any, gaussian: Any = None) -> None:
        super().__init__()
        self._words = iter(words)
        self._gaussian = gaussian

    def below(self, number: int) -> int:
        return next(self._words)

    def gaussian(self, values: Any, sigma: float) -> Any:
        """The values; the first draw is what was given, where something was."""
        found = super().gaussian(values, sigma)
        given, self._gaussian = self._gaussian, None
        return found if given is None else found + given


def gate_of(table: World, event: Any, noise: Any) -> tuple[Gate, StrictCharges]:
    charges = StrictCharges(Plan((Charge("slot", event),)), table.relation)
    charges.unit = table.unit
    return Gate(table.source(), charges, table.relation, noise, table.public), charges


def bound(table: World, question: Any) -> Any:
    """A question that carries its source, with the one of this table."""
    if isinstance(table, Holding) and isinstance(question, Values):
        return replace(question, held=table.held)
    return question


def given_to_noise(table: World, question: Any, event: Any) -> list[tuple[str, Any, float]]:
    """What the mechanism was asked to perturb."""
    noise = CoinNoise(table.coins(question, event))
    gate, _ = gate_of(table, event, noise)
    gate.ask("slot", bound(table, question))
    return noise.asked


# --- how much of what is charged a neighbour moves ----------------------------------------------


def share(moved: float, charged: float) -> float:
    if moved > charged:
        raise Broken(f"a neighbour moves {moved}, charged are {charged}")
    return moved / charged


def whole(array: Any) -> list[int]:
    return [int(each) for each in np.ravel(array)]


def squared(a: Any, b: Any) -> int:
    return sum((x - y) ** 2 for x, y in zip(whole(a), whole(b), strict=True))


def compared(a: list[Any], b: list[Any], event: Any) -> float:
    """The share of the event's sensitivity by which the exact integers differ."""
    if [(kind, np.shape(x), scale) for kind, x, scale in a] != [
        (kind, np.shape(x), scale) for kind, x, scale in b
    ]:
        raise Broken("a neighbour changes the kind, shape or scale of a draw")
    gaps = [
        abs(x - y)
        for (_, p, _), (_, q, _) in zip(a, b, strict=True)
        for x, y in zip(whole(p), whole(q), strict=True)
    ]
    if isinstance(event, Gaussian):
        share(max(gaps), event.step)
        share(sum(gap > 0 for gap in gaps), event.changes)
        return sum(gap * gap for gap in gaps) / (event.changes * event.step**2)
    if isinstance(event, Laplace):
        return share(sum(gaps), event.l1)
    return share(max(gaps), event.sensitivity)


def moved(a: World, b: World, question: Any, event: Any) -> float:
    """Two neighbours under the relation of the account."""
    return compared(given_to_noise(a, question, event), given_to_noise(b, question, event), event)


def picked(a: World, b: World, question: Any, event: Laplace) -> float:
    """A pick by Laplace noise: l1 is twice what a score moves at most."""
    given = (given_to_noise(table, question, event) for table in (a, b))
    return compared(*given, Selection(event.scale, event.l1 // 2))


def contributed(a: World, b: World, question: Any, event: Any) -> float:
    """Sampled sums: what one row adds to them. A replacement is two of these, on two `sides`."""
    at = next((i for i, row in enumerate(a.rows) if b.rows[i : i + 1] != (row,)), len(a.rows) - 1)
    less = a.without(at)
    beside = given_to_noise(less, question, event)
    found = 0.0
    for table in (a, b) if len(a.rows) == len(b.rows) else (a,):
        for j, (more, fewer) in enumerate(
            zip(given_to_noise(table, question, event), beside, strict=True)
        ):
            if isinstance(event, SampledGroups):
                unit = round(more[2] / event.multipliers[j])
            else:
                unit = event.l2
            found = max(found, math.sqrt(share(squared(more[1], fewer[1]), unit**2)))
    return found


def law(table: World, question: Any, event: Any) -> Any:
    """Every pick and its log-probability."""

    def run(chooser: Any) -> Any:
        gate, _ = gate_of(table, event, ChoosingNoise(chooser))
        return gate.ask("slot", question)

    return enumerate_transcripts(run)


def ranged(a: World, b: World, question: Any, event: Any) -> float:
    """Picks from a law: its log-ratios have a range of at most 2Δ/scale, k times."""
    found = compare(law(a, question, event), law(b, question, event)).bounded_range
    return share(found - 1e-9, event.k * 2 * event.sensitivity / event.scale)


def holders(table: World, question: Any, event: Any) -> dict[str, int]:
    """Values and their counts: shown ones come in the order of their counts, then of their names."""
    noise = StillNoise()
    gate, _ = gate_of(table, event, noise)
    texts = gate.ask("slot", bound(table, question))
    counts = sorted((n for _, x, _ in noise.asked for n in whole(x)), reverse=True)
    assert len(texts) == len(counts)
    return dict(zip(texts, counts, strict=True))


def counted(a: World, b: World, question: Any, event: Any) -> float:
    """At most `values` counts move by one, on `sides` sides."""
    one, other = holders(a, question, event), holders(b, question, event)
    gaps = [other.get(text, 0) - one.get(text, 0) for text in {*one, *other}]
    share(max(map(abs, gaps), default=0), 1)
    return max(
        share(sum(gap > 0 for gap in gaps), event.values),
        share(sum(gap < 0 for gap in gaps), event.values),
        share(sum(map(abs, gaps)), event.values * event.sides),
    )


def given_critic(table: World, question: Any, event: Any, linear: Any) -> Any:
    """θ on its grid, before noise, where the noise of the linear term is `linear`."""
    noise = CoinNoise((), linear)
    gate, _ = gate_of(table, event, noise)
    gate.ask("slot", question)
    (_, zeros, scale), (_, theta, output_scale) = noise.asked
    assert not zeros.any()
    assert (scale, output_scale) == (event.sigma, event.output_sigma)
    return theta


def looked_at(rows: Any, question: Critic, shape: Any) -> Any:
    """ψ of rows, written down naively: one for every cell that a row lies in."""
    blocks = [
        np.array([table_of([row], shape, clique).ravel() for row in rows], np.float64).reshape(
            len(rows), math.prod(shape[i] for i in clique)
        )
        for clique in question.cliques
    ]
    return np.concatenate(blocks, axis=1)


def criticised(a: World, b: World, question: Any, event: Any) -> float:
    """The three sensitivities of a critic, at the minimum that one draw of noise leads to.

    For the θ that table `a` finds with noise Z, the noise Z' that leads table `b` there follows from
    the gradients. It must be within √changes rows of Z, the determinants of the Hessians within
    1 + jacobian, and what `b` really finds with Z' within output_l2 of θ.
    """
    lattice, grid = 2**24, 2**30
    rng = Random(repr((a.rows, b.rows)))
    size = sum(math.prod(a.shape[i] for i in clique) for clique in question.cliques)
    reach = rng.choice((0, 1, 20)) * lattice
    linear = np.array([rng.randint(-reach, reach) for _ in range(size)], np.int64)
    theta = given_critic(a, question, event, linear)
    at = theta / grid
    ridge = len(question.cliques) / 4 / event.jacobian
    records = list(zip(*(map(int, column) for column in question.records), strict=True))
    gradients, logs = [], []
    for table in (a, b):
        real, fake = (looked_at(rows, question, a.shape) for rows in (table.rows, records))
        p, q = 1 / (1 + np.exp(real @ at)), 1 / (1 + np.exp(-(fake @ at)))
        weight = question.weight / len(records)
        gradients.append(fake.T @ (weight * q) - real.T @ p + ridge * at)
        hessian = real.T @ (real * (p * (1 - p))[:, None]) + ridge * np.eye(size)
        hessian += fake.T @ (fake * (weight * q * (1 - q))[:, None])
        logs.append(np.linalg.slogdet(hessian)[1])
    # The formula in the docstring is the function that is minimised.
    assert np.linalg.norm(gradients[0] + linear / lattice) < 2.0**-19 + 1e-8 * (1 + reach / lattice)
    moved = gradients[0] - gradients[1]
    other = linear + np.rint(lattice * moved).astype(np.int64)
    used = share(float(lattice * np.linalg.norm(moved)), event.step * math.sqrt(event.changes))
    share(abs(logs[0] - logs[1]) - 1e-9, math.log1p(event.jacobian))
    there = given_critic(b, question, event, other)
    share(float(np.linalg.norm(there - theta)), event.output_l2)
    return used


# --- random requests, and the least events that cover them --------------------------------------


def some_cliques(rng: Random, table: World, least: int = 0) -> list[tuple[int, ...]]:
    every = [
        clique
        for clique in CLIQUES
        if least <= len(clique) and set(clique) <= set(range(len(table.shape)))
    ]
    return [rng.choice(every) for _ in range(rng.randint(1, 3))]


def sized(table: World, clique: Any) -> tuple[int, ...]:
    return tuple(table.shape[i] for i in clique)


def reals(rng: Random, shape: tuple[int, ...], most: float = 4.0) -> Any:
    draw = rng.choice(
        (lambda: 0.0, lambda: float(rng.randint(0, 4)), lambda: rng.uniform(-most, most))
    )
    return np.array([draw() for _ in range(math.prod(shape))]).reshape(shape)


def merged(rng: Random, table: World, clique: Any) -> Any:
    if not clique or rng.random() < 0.5:
        return clique
    labels = []
    for size in sized(table, clique):
        cells = rng.randint(1, size)
        label = [*range(cells), *(rng.randrange(cells) for _ in range(size - cells))]
        rng.shuffle(label)
        labels.append(np.array(label))
    return Coarsened(clique, tuple(labels))


def some_cells(rng: Random, table: World, cliques: Any, *, sided: bool) -> list[Cell]:
    found = []
    for _ in range(rng.randint(1, 3)):
        j = rng.randrange(len(cliques))
        index = tuple(rng.randrange(size) for size in sized(table, cliques[j]))
        found.append(Cell(j, index, rng.choice((-1, 1)) if sided else 0))
    return found


def some_records(rng: Random, table: World) -> list[Any]:
    rows = [table.row(rng) for _ in range(rng.randint(1, 4))]
    return [np.array(column) for column in zip(*rows, strict=True)]


def synthetic(rng: Random, table: World, cliques: Any) -> tuple[list[Any], int]:
    rows = [table.row(rng) for _ in range(rng.randint(1, 5))]
    return [table_of(rows, table.shape, clique) for clique in cliques], len(rows)


def some_classes(rng: Random, table: World) -> list[ProductQueries]:
    found = []
    for clique in some_cliques(rng, table, least=1)[:2]:
        literals = tuple(
            np.array([[rng.randint(0, 1) for _ in range(size)] for _ in range(rng.randint(1, 2))])
            for size in sized(table, clique)
        )
        found.append(ProductQueries(clique, literals, rng.choice(("all", "any", "odd"))))
    return found


def marginals(rng: Random, table: World) -> Any:
    tables = [merged(rng, table, clique) for clique in some_cliques(rng, table)]
    return Marginals(tables), Gaussian(1.5, 1, table.sides * len(tables))


def thresholded(rng: Random, table: World) -> Any:
    tables = [merged(rng, table, clique) for clique in some_cliques(rng, table)]
    shapes = [each.shape if isinstance(each, Coarsened) else sized(table, each) for each in tables]
    beyond = [rng.choice((0.0, 0.0, 0.3, 1.0, 2.5)) for _ in tables]
    question = ThresholdedErrors(tables, [reals(rng, shape) for shape in shapes], beyond)
    return question, Gaussian(1.5, table.sides, len(tables))


def cell_counts(rng: Random, table: World) -> Any:
    cliques = some_cliques(rng, table)
    cells = some_cells(rng, table, cliques, sided=False)
    return CellCounts(cliques, cells), Gaussian(1.5, 1, len(cells))


def row_count(rng: Random, table: World) -> Any:
    return RowCount(), Gaussian(1.5)


def degrees(rng: Random, table: World) -> Any:
    groups = np.array([rng.randrange(3) for _ in range(4)])
    return Degrees((0, 1), groups), Gaussian(1.5, 1, 2 * table.sides)


def triangles(rng: Random, table: World) -> Any:
    return Triangles((0, 1)), Gaussian(1.5, table.shape[0] - 2)


def held_values(rng: Random, table: World) -> Any:
    # A threshold of 1 shows whatever is held, as no noise is added.
    most = 1 if table.unit is None else table.unit.max_rows
    assert isinstance(table, Holding)
    return Values(table.held, "town", 99), Discovery(1.5, 1, most, table.sides)


def worst_marginals(weighted: bool) -> Any:
    def request(rng: Random, table: World) -> Any:
        cliques = some_cliques(rng, table)
        weights = [rng.choice((1, 3, 4096)) for _ in cliques] if weighted else None
        penalties = [rng.choice((0.0, 0.5, 1.7)) for _ in cliques]
        references = [reals(rng, sized(table, clique)) for clique in cliques]
        question = WorstMarginals(cliques, references, penalties, weights)
        charged = 16 * table.sides * max(weights or [1])
        return question, Selection(100.0, charged, rng.randint(1, len(cliques)))

    return request


def worst_cell(signed: bool) -> Any:
    def request(rng: Random, table: World) -> Any:
        cliques = some_cliques(rng, table)
        references = [reals(rng, sized(table, clique)) for clique in cliques]
        return WorstCell(cliques, references, signed), Selection(100.0, 16)

    return request


def picked_cells(every: bool) -> Any:
    def request(rng: Random, table: World) -> Any:
        cliques = [(0,), (0, 1)][: rng.randint(1, 2)]
        rows = rng.choice((1, len(table.rows), 7))
        question = PickedCells(cliques, some_records(rng, table), rows, every)
        return question, Selection(rng.choice((0.3, 1.0, 5.0)) * ROW, ROUNDED)

    return request


def picked_queries(signed: bool) -> Any:
    def request(rng: Random, table: World) -> Any:
        classes = some_classes(rng, table)
        references = [reals(rng, each.shape) for each in classes]
        question = PickedQueries(classes, references, signed)
        return question, Selection(rng.choice((0.3, 1.0, 5.0)) * ROW, ROUNDED)

    return request


def tossed(rng: Random, table: World) -> Any:
    cliques = some_cliques(rng, table)
    cells = some_cells(rng, table, cliques, sided=True)
    scale, gamma = rng.choice((0.5, 3.0, 5000.0)), rng.choice((0.01, 0.5, 3.0))
    # Log-odds move by 1/(B(1 − e^−γ)); the two integers share it, and one more is for rounding.
    drawn = 2.0 * ROW * scale * -math.expm1(-gamma) * rng.choice((1.0, 1.0, 0.3, 1.9))
    most = drawn / (2 * scale * -math.expm1(-gamma))
    question = BernoulliRejection(
        cliques, cells, some_records(rng, table), rng.randint(1, 6), scale, gamma
    )
    return question, Selection(drawn, math.ceil(most * (1 + 1e-9) + 2), len(cells))


def critic(rng: Random, table: World) -> Any:
    cliques = some_cliques(rng, table, least=1)
    size = sum(math.prod(sized(table, clique)) for clique in cliques)
    jacobian = rng.choice((0.05, 0.3, 1.0))
    ridge = len(cliques) / 4 / jacobian
    radius = (2.0**-20 + math.sqrt(size) / 2**25) / ridge
    beyond = math.ceil((2 * radius * 2**30 + math.sqrt(size)) * (1 + 1e-9))
    most = table.sides * len(cliques)
    question = Critic(cliques, some_records(rng, table), rng.choice((1.0, 5.5)))
    return question, Perturbation(1e6, 2**24, most, jacobian, size, 1e6, beyond)


def moments(kind: str) -> Any:
    def request(rng: Random, table: World) -> Any:
        cliques = tuple(some_cliques(rng, table, least=1))
        maps = RandomFeatures(table.shape, cliques, kind, rng.choice((1, 2, 5)), rng.randrange(99))
        features = maps.units * (2 if kind == "fourier" else 1)
        norm = math.sqrt(len(cliques)) * (4096 + math.sqrt(features) / 2)
        most = math.ceil(norm * (1 + 1e-9))
        event = SampledGaussian(1e4, most, features * len(cliques), 1.0, table.sides)
        return Moments(maps), event

    return request


def payoff(rng: Random, table: World) -> Any:
    cliques = some_cliques(rng, table)
    cells = some_cells(rng, table, cliques, sided=True)
    expected = [rng.uniform(0, 5) for _ in cells]
    return Payoff(cliques, cells, expected), Laplace(1e6, ROW * len(cells))


def worst_error(rng: Random, table: World) -> Any:
    cliques = some_cliques(rng, table)
    return WorstError(cliques, *synthetic(rng, table, cliques)), lattice(rng)


def worst_query_error(rng: Random, table: World) -> Any:
    classes = some_classes(rng, table)
    tables, size = synthetic(rng, table, [each.clique for each in classes])
    return WorstQueryError(classes, tables, size), lattice(rng)


def worst_error_of_rows(rng: Random, table: World) -> Any:
    return WorstErrorOfRows(some_cliques(rng, table), some_records(rng, table)), lattice(rng)


def lattice(rng: Random) -> Laplace:
    return Laplace(20.0, rng.choice((1, 7, 16)))


def total_variations(rng: Random, table: World) -> Any:
    cliques = some_cliques(rng, table)
    # In halves of a row: one cell, or two, or one and all others together.
    rows = 1 if table.relation is Relation.ADD_REMOVE and table.public is not None else 2
    question = TotalVariations(cliques, *synthetic(rng, table, cliques))
    return question, Gaussian(9.5, 2 * rows, len(cliques))


@dataclass(frozen=True, eq=False)
class Net:
    """Two dense layers whose factors are public functions of a row, some of them nonsense."""

    weights: Any
    odd: Any
    slots: int = 4
    layers: tuple[tuple[int, int], ...] = ((3, 2), (2, 1))

    def factors(self, rows: Any) -> Any:
        a = np.stack([rows @ self.weights[:, k] for k in range(5)], axis=1)
        d = np.stack([np.cos(rows @ self.weights[:, k]) for k in range(3)], axis=1)
        d *= 2.0 ** (rows.sum(axis=1, keepdims=True) * 3 - 6)
        d[(rows == self.odd[0]).all(axis=1)] = self.odd[1]
        return [(a[:, :3], d[:, :2]), (a[:, 3:], d[:, 2:])]


def network_gradient(groups: int, watch: bool, held_out: float) -> Any:
    def request(rng: Random, table: World) -> Any:
        weights = np.array([[rng.gauss(0, 1) for _ in range(5)] for _ in range(3)])
        odd = np.array(table.row(rng)), rng.choice((math.nan, math.inf, 1e300, 0.0))
        members = None
        if groups > 1:
            shapes = ((4, 2), (3, 1))
            members = tuple(
                np.array([rng.randrange(groups) for _ in range(math.prod(shape))]).reshape(shape)
                for shape in shapes
            )
        thresholds = tuple(rng.choice((0.01, 1.0, 30.0)) for _ in range(groups))
        drawn = [rng.uniform(0.05, 1.0) for _ in range(groups)]
        shares = tuple(each / math.hypot(*drawn) for each in drawn)
        parts = Groups(thresholds, members, shares)
        question = NetworkGradient(Net(weights, odd), parts, watch, held_out)
        multipliers = tuple(rng.choice((0.5, 1.0, 4.0)) for _ in range(1 + watch))
        numbers = 8 + 3 + groups * watch
        rate = rng.choice((1.0, 0.5))
        return question, SampledGroups(multipliers, numbers, rate, table.sides)

    return request


def best_by_task(rng: Random, table: World) -> Any:
    # How many held-out rows a public predictor gets right: one row, one count.
    targets = [table.row(rng) for _ in range(rng.randint(1, 3))]
    scorers = tuple(
        lambda rows, target=target: float((rows == np.array(target)).all(axis=1).sum())
        for target in targets
    )
    question = BestModels(Models(scorers), len(table.rows), rng.choice((0.0, 0.25, 0.5)))
    return question, Selection(900.0, 257, rng.randint(1, len(scorers)))


def best_by_divergence(rng: Random, table: World) -> Any:
    cliques = tuple(some_cliques(rng, table))
    tables = []
    for _ in range(rng.randint(1, 3)):
        shares = [
            np.array(
                [
                    rng.choice((0.0, 1.0, rng.random()))
                    for _ in range(math.prod(sized(table, clique)))
                ]
            )
            for clique in cliques
        ]
        tables.append(
            tuple(
                (each / max(1.0, each.sum())).reshape(sized(table, clique))
                for each, clique in zip(shares, cliques, strict=True)
            )
        )
    models = Models(None, 1.0, cliques, tuple(tables))
    rows = rng.choice((1, 2, len(table.rows), 40))
    return BestModels(models, rows), Selection(900.0, 257, rng.randint(1, len(tables)))


def best_by_costs(rng: Random, table: World) -> Any:
    # What a row costs at the nearest of some centres, cut off: also where it would cost more.
    choices = rng.randint(1, 3)
    costs = tuple(
        tuple(
            np.array([[rng.choice((0.0, rng.random(), 9.0))] * choices for _ in range(size)])
            for size in table.shape
        )
        for _ in range(rng.randint(1, 3))
    )
    models = Models(sensitivity=rng.choice((0.5, 3.0)), costs=costs)
    question = BestModels(models, len(table.rows), rng.choice((0.0, 0.5)))
    return question, Selection(900.0, 257, rng.randint(1, len(costs)))


def descent(rng: Random) -> tuple[Any, Weights]:
    loss = rng.choice((Logistic(), Squared(0.5), Squared(3.0), Softmax(2)))
    whole = np.array([[rng.randint(-4000, 4000) for _ in range(3)] for _ in range(loss.outputs)])
    start = [rng.uniform(-2, 2) for _ in range(loss.outputs)] if rng.random() < 0.5 else []
    return loss, Weights(whole, 1e-3, tuple(start))


def target_levels(rng: Random, table: World) -> Any:
    loss, _ = descent(rng)
    relation = Relation.REPLACE if table.sides == 2 else Relation.ADD_REMOVE
    return TargetLevels(loss), Gaussian(9.0, *loss.moves(relation))


def steepest(event: Callable[[int], Any]) -> Any:
    """`event` of the most that a score moves."""

    def request(rng: Random, table: World) -> Any:
        return SteepestVertex(*descent(rng)), event(2**30 * table.sides)

    return request


def linear_gradient(rng: Random, table: World) -> Any:
    loss, weights = descent(rng)
    most, rate = rng.choice((1, 1000, 2**28, 2**30)), rng.choice((1.0, 0.25))
    event = SampledGaussian(1e9, most, 3 * loss.outputs, rate, table.sides)
    return LinearGradient(loss, weights), event


@dataclass(frozen=True)
class Case:
    """A question, random requests of it, and what of its event may not be one less.

    `reach` is the share of what is charged that some neighbour moves: 1, or what the comment says.
    """

    asks: type
    request: Callable[[Random, World], tuple[Any, Any]]
    least: tuple[str, ...]
    table: Callable[[Random], World] = world
    measure: Callable[[World, World, Any, Any], float] = moved
    reach: float = 1.0

    def trial(self, seed: int, neighbours: int = 2) -> float:
        """The largest share of what is charged that some neighbours of a random table move."""
        rng = Random(seed)
        table = self.table(rng)
        question, event = self.request(rng, table)
        found = 0.0
        for _ in range(neighbours):
            at = rng.randrange(len(table.rows))
            if table.relation is Relation.REPLACE:
                other = table.exchanged(at, table.row(rng))
            else:
                other = table.without(at)
            found = max(found, self.measure(table, other, question, event))
        return found


CASES = {
    "marginals": Case(Marginals, marginals, ("changes",)),
    "thresholded errors": Case(ThresholdedErrors, thresholded, ("step", "changes")),
    "cell counts": Case(CellCounts, cell_counts, ("changes",)),
    "row count": Case(RowCount, row_count, ("step",)),
    "degrees": Case(Degrees, degrees, ("changes",), graph),
    "triangles": Case(Triangles, triangles, ("step",), graph),
    "values": Case(Values, held_values, ("values", "sides"), values, counted),
    "worst marginals": Case(WorstMarginals, worst_marginals(False), ("sensitivity",)),
    "worst marginals, weighted": Case(WorstMarginals, worst_marginals(True), ("sensitivity",)),
    "worst cell": Case(WorstCell, worst_cell(False), ("sensitivity",)),
    "worst cell, signed": Case(WorstCell, worst_cell(True), ("sensitivity",)),
    # 3 of 65539 units are for rounding.
    "picked cells": Case(
        PickedCells, picked_cells(True), ("sensitivity",), small, ranged, 1 - 1e-4
    ),
    "picked cells, own complements": Case(
        PickedCells, picked_cells(False), ("sensitivity",), small, ranged, 1 - 1e-4
    ),
    "picked queries": Case(
        PickedQueries, picked_queries(False), ("sensitivity",), small, ranged, 1 - 1e-4
    ),
    "picked queries, signed": Case(
        PickedQueries, picked_queries(True), ("sensitivity",), small, ranged, 1 - 1e-4
    ),
    # A step of one row is less than the derivative where it is largest, by 1/(2B) or so.
    "coins": Case(BernoulliRejection, tossed, ("sensitivity", "k"), reach=0.99),
    # A row's gradient is below 1; it comes near where the critic is sure and wrong.
    "critic": Case(
        Critic,
        critic,
        ("step", "changes", "coordinates", "output_l2"),
        measure=criticised,
        reach=0.99,
    ),
    # Half a unit a feature is for rounding; a softplus at the end of its range is below its bound.
    "moments, fourier": Case(
        Moments,
        moments("fourier"),
        ("l2", "coordinates", "sides"),
        measure=contributed,
        reach=0.999,
    ),
    "moments, relu": Case(
        Moments, moments("relu"), ("l2", "coordinates", "sides"), measure=contributed, reach=0.999
    ),
    "moments, softplus": Case(
        Moments, moments("softplus"), ("l2", "coordinates", "sides"), measure=contributed, reach=0.9
    ),
    "payoff": Case(Payoff, payoff, ("l1",)),
    # Any Laplace noise covers the worst error: its l1 is the lattice that the error is put on.
    "worst error": Case(WorstError, worst_error, ()),
    "worst query error": Case(WorstQueryError, worst_query_error, ()),
    "worst error of rows": Case(WorstErrorOfRows, worst_error_of_rows, ()),
    "total variations": Case(TotalVariations, total_variations, ("step", "changes")),
    # Rows are clipped a millionth inside the threshold.
    "network gradient": Case(
        NetworkGradient,
        network_gradient(1, False, 0.0),
        ("coordinates", "sides"),
        measure=contributed,
        reach=0.9999,
    ),
    "network gradient, watched groups": Case(
        NetworkGradient,
        network_gradient(3, True, 0.0),
        ("coordinates", "sides", "multipliers"),
        measure=contributed,
        reach=0.9999,
    ),
    "network gradient, held out": Case(
        NetworkGradient,
        network_gradient(2, False, 0.25),
        ("coordinates", "sides"),
        measure=contributed,
        reach=0.9999,
    ),
    # 1 of 257 units is for rounding.
    "best models, task": Case(BestModels, best_by_task, ("sensitivity",), reach=256 / 257),
    "best models, divergence": Case(BestModels, best_by_divergence, ("sensitivity",), reach=0.9),
    "best models, costs": Case(BestModels, best_by_costs, ("sensitivity",), reach=256 / 257),
    "steepest vertex": Case(
        SteepestVertex, steepest(lambda most: Selection(1e9, most)), ("sensitivity",), learning
    ),
    "steepest vertex, sampled": Case(
        SteepestVertex,
        steepest(lambda most: SampledSelection(1e9, most, 0.5)),
        ("sensitivity",),
        learning,
    ),
    "steepest vertex, Laplace": Case(
        SteepestVertex, steepest(lambda most: Laplace(1e9, 2 * most)), ("l1",), learning, picked
    ),
    "levels of targets": Case(TargetLevels, target_levels, ("step",), learning),
    # The norm is the event's own; rows are clipped a millionth inside it.
    "linear gradient": Case(
        LinearGradient, linear_gradient, ("coordinates", "sides"), learning, contributed, 0.999
    ),
}
