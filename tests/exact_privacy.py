"""Exact privacy: compare a mechanism's whole output law on every pair of neighbours.

Write the mechanism as a function from a dataset of a tiny domain to its `Law` (the log-probability of
every output), enumerate all neighbours, and hold the divergences against what the ledger claims:

    pairs = list(neighbours(range(2), 3, "replace"))
    check(lambda rows: my_law(rows), pairs, pure=1.0, rho=1.0 / 8)

A mechanism that asks several questions, each depending on the answers before, is run under
`enumerate_transcripts`, which plays every branch once. The unit is one row with `neighbours`, somebody
with several rows with `unit_neighbours`. A passed check is a proof (up to floating point) for that
domain and that number of rows, and for nothing larger.
"""

import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

import numpy as np

from understudy.errors import InputError
from understudy.players.base import DataPlayer, Problem, QueryPlayer, play
from understudy.privacy.cost import Plan
from understudy.privacy.gate import Charges, Gate
from understudy.privacy.noise import Noise
from understudy.privacy.relation import Relation
from understudy.testing.distributions import fingerprint
from understudy.testing.stand_ins import Rows, StrictCharges, TinyCounts

Row = Hashable
Dataset = tuple[Row, ...]
Law = Mapping[Hashable, float]
"""The log-probability of every output; outputs of probability zero may be absent or -inf."""

ORDERS = (1.01, 2.0, 4.0, 16.0, 64.0)
"""The Rényi orders at which zCDP claims are checked."""

_MASS_TOLERANCE = 1e-9


class PrivacyViolation(AssertionError):
    """A mechanism is less private than it claims; the message names pair, output and excess."""


# --- neighbours ---------------------------------------------------------------------------------


def neighbours(universe: Iterable[Row], n: int, relation: str) -> Iterator[tuple[Dataset, Dataset]]:
    """Every unordered pair of neighbouring datasets over a finite universe, each pair once.

    `"replace"`: two datasets of n rows that differ in one position. `"add-remove"`: for every size
    m = 0, ..., n a dataset of m rows and one of m + 1 rows, the same but for one row more anywhere.
    Datasets are tuples, so a mechanism that looks at the order of rows is caught as well.
    """
    rows = tuple(universe)
    if len(set(rows)) != len(rows) or not rows:
        raise InputError(f"universe: {len(rows)} rows; expected at least one row, all distinct")
    if n < 0:
        raise InputError(f"n: {n}; expected a number of rows, 0 or more")
    if relation == "replace":
        rank = {row: i for i, row in enumerate(rows)}
        for data in itertools.product(rows, repeat=n):
            for position in range(n):
                for other in rows[rank[data[position]] + 1 :]:
                    yield data, (*data[:position], other, *data[position + 1 :])
    elif relation == "add-remove":
        for larger in (
            each for m in range(n + 1) for each in itertools.product(rows, repeat=m + 1)
        ):
            smaller = {(*larger[:i], *larger[i + 1 :]) for i in range(len(larger))}
            for data in sorted(smaller, key=repr):
                yield data, larger
    else:
        raise InputError(f"relation: {relation!r}; expected 'replace' or 'add-remove'")


def unit_neighbours(
    universe: Iterable[Row], units: int, most: int, relation: str
) -> Iterator[tuple[Dataset, Dataset]]:
    """Every pair of datasets of (unit, row) that differ in one whole unit of 1 to `most` rows.

    `"add-remove"`: up to `units` − 1 units, and one more. `"replace"`: `units` units, of which one is
    exchanged for another, with another name and any number of rows.
    """
    rows = tuple(universe)
    if units < 1 or most < 1:
        raise InputError(f"units: {units}, most: {most}; expected at least 1 of each")
    if relation not in ("replace", "add-remove"):
        raise InputError(f"relation: {relation!r}; expected 'replace' or 'add-remove'")
    holdings = [
        held
        for size in range(1, most + 1)
        for held in itertools.combinations_with_replacement(rows, size)
    ]

    def dataset(held: Sequence[Dataset], names: Sequence[int]) -> Dataset:
        return tuple((name, row) for name, own in zip(names, held, strict=True) for row in own)

    others = range(units) if relation == "add-remove" else range(units - 1, units)
    for count in others:
        for held in itertools.product(holdings, repeat=count):
            shared = dataset(held, range(count))
            for own in holdings:
                with_one = (*shared, *dataset([own], [units]))
                if relation == "add-remove":
                    yield shared, with_one
                else:
                    for other in holdings:
                        yield with_one, (*shared, *dataset([other], [units + 1]))


# --- divergences --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Divergences:
    """How far two laws are apart, in every sense that a definition of privacy uses.

    `forward` and `backward` hold the log-probabilities of the two laws over the same `outputs`
    (those that at least one law can produce).
    """

    outputs: tuple[Hashable, ...]
    forward: np.ndarray = field(repr=False)
    backward: np.ndarray = field(repr=False)

    @property
    def log_ratios(self) -> np.ndarray:
        """ln P(o) - ln Q(o) per output; infinite where only one law can produce it."""
        return self.forward - self.backward

    @property
    def max_log_ratio(self) -> float:
        """The smallest ε for which the pair is pure ε-indistinguishable."""
        return float(np.abs(self.log_ratios).max())

    @property
    def worst_output(self) -> Hashable:
        """An output at which the log-ratio is largest in absolute value."""
        return self.outputs[int(np.abs(self.log_ratios).argmax())]

    @property
    def bounded_range(self) -> float:
        """The length of the interval that holds all log-ratios."""
        ratios = self.log_ratios
        low, high = float(ratios.min()), float(ratios.max())
        return math.inf if math.isinf(low) or math.isinf(high) else high - low

    def delta(self, epsilon: float) -> float:
        """The hockey-stick divergence sum_o (P(o) - e^ε Q(o))_+, the larger of both orders."""
        return max(
            _hockey_stick(self.forward, self.backward, epsilon),
            _hockey_stick(self.backward, self.forward, epsilon),
        )

    def renyi(self, order: float) -> tuple[float, float]:
        """The Rényi divergences D_a(P || Q) and D_a(Q || P) at order a > 1."""
        return (
            _renyi(self.forward, self.backward, order),
            _renyi(self.backward, self.forward, order),
        )

    @property
    def rho(self) -> float:
        """max D_a / a over `ORDERS`, both directions: the zCDP parameter seen at these orders."""
        return max(max(self.renyi(order)) / order for order in ORDERS)


def _hockey_stick(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    # P (1 - e^{ε - L}) where the loss L exceeds ε: no cancellation of two rounded sums.
    loss = p - q
    beyond = loss > epsilon
    return float(np.sum(-np.exp(p[beyond]) * np.expm1(epsilon - loss[beyond])))


def _renyi(p: np.ndarray, q: np.ndarray, order: float) -> float:
    reached = p > -np.inf
    if np.any(q[reached] == -np.inf):
        return math.inf
    terms = order * p[reached] + (1.0 - order) * q[reached]
    return max(0.0, _log_sum(terms) / (order - 1.0))


def _log_sum(logs: np.ndarray) -> float:
    return float(np.logaddexp.reduce(logs))


def compare(law_a: Law, law_b: Law) -> Divergences:
    """All divergences between two laws; both must sum to one within 1e-9."""
    for name, law in (("law_a", law_a), ("law_b", law_b)):
        _require_mass(np.array(list(law.values()), dtype=float), name)
    outputs = tuple(
        output
        for output in dict.fromkeys([*law_a, *law_b])
        if law_a.get(output, -math.inf) > -math.inf or law_b.get(output, -math.inf) > -math.inf
    )
    return Divergences(
        outputs=outputs,
        forward=np.array([law_a.get(output, -math.inf) for output in outputs], dtype=float),
        backward=np.array([law_b.get(output, -math.inf) for output in outputs], dtype=float),
    )


def _require_mass(log_probs: np.ndarray, name: str) -> None:
    if log_probs.size == 0 or np.isnan(log_probs).any():
        raise InputError(f"{name}: empty or not a number; expected log-probabilities")
    mass = math.exp(_log_sum(log_probs))
    if abs(mass - 1.0) > _MASS_TOLERANCE:
        raise InputError(f"{name}: probabilities sum to {mass!r}; expected 1 within 1e-9")


# --- the check ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Report:
    """What `check` saw over all pairs: the worst of each divergence, to compare with the claim.

    `delta` is the hockey-stick at the claimed ε, 0 where no (ε, δ) was claimed.
    """

    pairs: int
    pure: float
    rho: float
    bounded_range: float
    delta: float


def check(
    mechanism: Callable[[Dataset], Law],
    pairs: Iterable[tuple[Dataset, Dataset]],
    *,
    pure: float | None = None,
    rho: float | None = None,
    epsilon_delta: tuple[float, float] | None = None,
    bounded_range: float | None = None,
    slack: float = 1e-9,
) -> Report:
    """Hold a mechanism against its claims on every pair; raises `PrivacyViolation` on the first.

    pure            |ln P(o)/Q(o)| <= pure for every output
    rho             D_a(P || Q) <= rho a at every order of `ORDERS`, in both directions (zCDP)
    epsilon_delta   sum_o (P(o) - e^ε Q(o))_+ <= δ in both directions
    bounded_range   max_o ln P/Q - min_o ln P/Q <= bounded_range

    The mechanism is asked once per dataset. `slack` is added to every claim, for rounding only.
    """
    if pure is None and rho is None and epsilon_delta is None and bounded_range is None:
        raise InputError("claims: none; expected pure, rho, epsilon_delta or bounded_range")
    epsilon, delta = epsilon_delta or (math.inf, None)
    law = cache(mechanism)
    seen, worst = 0, (0.0, 0.0, 0.0, 0.0)
    for a, b in pairs:
        seen += 1
        found = compare(law(a), law(b))
        orders = {order: max(found.renyi(order)) for order in ORDERS}
        rates = [value / order for order, value in orders.items()]
        observed = found.max_log_ratio, max(rates), found.bounded_range, found.delta(epsilon)
        claims = [("log-ratio", observed[0], pure)]
        claims.append(("range of log-ratios", observed[2], bounded_range))
        for order, value in orders.items():
            most = None if rho is None else rho * order
            claims.append((f"Rényi divergence of order {order:g}", value, most))
        claims.append((f"hockey-stick divergence at epsilon {epsilon:g}", observed[3], delta))
        for what, value, claimed in claims:
            if claimed is not None and value > claimed + slack:
                raise PrivacyViolation(
                    f"{what} {value:.9g} exceeds the claimed {claimed:.9g} by "
                    f"{value - claimed:.3g} on the neighbours {a!r} and {b!r}, whose log-ratio is "
                    f"worst at output {found.worst_output!r}"
                )
        worst = tuple(map(max, worst, observed))
    if not seen:
        raise InputError("pairs: none; a check over no pairs would pass for any mechanism")
    return Report(seen, *worst)


# --- sequential mechanisms ----------------------------------------------------------------------


class Chooser:
    """Stands in for the noise of a sequential mechanism and plays one branch of it.

    A mechanism asks `choose` wherever it would draw; the answers so far are its `transcript`.
    """

    def __init__(self, script: Sequence[int], expected: Sequence[np.ndarray]) -> None:
        self._script = tuple(script)
        self._expected = tuple(expected)
        self._asked: list[np.ndarray] = []
        self._answers: list[int] = []
        self._log_prob = 0.0

    def choose(self, log_probs: Any) -> int:
        """One index, drawn in the enumerated sense from the law with these log-probabilities."""
        law = np.array(log_probs, dtype=float)
        if law.ndim != 1:
            raise InputError(f"log_probs: {law.ndim} dimensions; expected a vector")
        _require_mass(law, "log_probs")
        depth = len(self._answers)
        if depth < len(self._script):
            if not np.array_equal(law, self._expected[depth]):
                raise InputError(
                    f"run: choice {depth} had another law when the same answers were given again; "
                    "fix every other source of randomness inside run"
                )
            answer = self._script[depth]
        else:
            answer = int(np.flatnonzero(law > -np.inf)[0])
        self._asked.append(law)
        self._answers.append(answer)
        self._log_prob += float(law[answer])
        return answer

    @property
    def transcript(self) -> tuple[int, ...]:
        """The answers given so far, in order."""
        return tuple(self._answers)

    @property
    def log_prob(self) -> float:
        """The log-probability of the transcript so far."""
        return self._log_prob

    def _next_script(self) -> tuple[list[int], list[np.ndarray]] | None:
        # The deepest choice that still has an untried answer of positive probability.
        for depth in range(len(self._answers) - 1, -1, -1):
            law, answer = self._asked[depth], self._answers[depth]
            later = np.flatnonzero(law[answer + 1 :] > -np.inf)
            if later.size:
                script = [*self._answers[:depth], answer + 1 + int(later[0])]
                return script, self._asked[: depth + 1]
        return None


def enumerate_transcripts(
    run: Callable[[Chooser], Hashable], *, limit: int = 1_000_000
) -> dict[Hashable, float]:
    """The exact law of a sequential mechanism's output, by playing every transcript once.

    `run` must be deterministic but for its chooser. Transcripts that lead to the same output are
    added up; return `chooser.transcript` to study the transcripts themselves, which is the stronger
    claim (the output is post-processing). Raises `InputError` beyond `limit` transcripts.
    """
    law: dict[Hashable, float] = {}
    script: list[int] = []
    expected: list[np.ndarray] = []
    for _ in range(limit):
        chooser = Chooser(script, expected)
        output = run(chooser)
        if len(chooser.transcript) < len(script):
            raise InputError("run: stopped earlier when the same answers were given again")
        law[output] = float(np.logaddexp(law.get(output, -math.inf), chooser.log_prob))
        following = chooser._next_script()
        if following is None:
            return law
        script, expected = following
    raise InputError(f"run: more than {limit} transcripts; take fewer rounds or candidates")


class ChoosingNoise(Noise):
    """A noise source for a real gate, whose selections are answered by a `Chooser`.

    With it a whole game, gate and players and all, runs under `enumerate_transcripts`: every
    one-shot top-k becomes one choice from its exact law (Gumbel noise of the given scale, the k
    largest in order). Laplace and Gaussian draws have infinitely many answers and are refused, but
    for as many Gaussian ones as `gaussians` gives, in order: what is enumerated is then the law of
    the selections given those releases, which is what adaptive composition asks about. NOT PRIVATE.
    """

    private = False

    def __init__(self, chooser: Chooser, gaussians: Sequence[np.ndarray] = ()) -> None:
        self._chooser = chooser
        self._gaussians = list(gaussians)

    def below(self, number: int) -> int:
        """One of `number` equally likely branches."""
        return self._chooser.choose(np.full(number, -math.log(number)))

    def top_k(self, scores: np.ndarray, scale: float, k: int) -> tuple[int, ...]:
        """The k chosen indices in order, on the branch that the chooser plays."""
        if k == 1:  # much faster by the closed form of the law
            return (self._chooser.choose(log_law(scores, scale)),)
        law = log_law_top_k(scores, scale, k)
        outcomes = list(law)
        return outcomes[self._chooser.choose([law[outcome] for outcome in outcomes])]

    def laplace(self, values: np.ndarray, scale: float) -> np.ndarray:
        """Refused: write the law down with `discrete_laplace_law` instead."""
        raise InputError("laplace: transcripts cannot be enumerated; compare the laws themselves")

    def gaussian(self, values: np.ndarray, sigma: float) -> np.ndarray:
        """The next given answer; refused beyond: write down the law, `discrete_gaussian_law`."""
        if self._gaussians:
            return np.asarray(self._gaussians.pop(0), np.int64).reshape(np.shape(values))
        raise InputError("gaussian: transcripts cannot be enumerated; compare the laws themselves")


# --- discrete laws ------------------------------------------------------------------------------


def log_law(scores: Sequence[float] | np.ndarray, scale: float) -> np.ndarray:
    """log P(index) of one pick: log softmax(scores/scale)."""
    logits = np.asarray(scores, dtype=np.float64).reshape(-1) / scale
    shifted = logits - logits.max()
    return shifted - np.log(np.exp(shifted).sum())


def log_law_top_k(
    scores: Sequence[float] | np.ndarray, scale: float, k: int
) -> dict[tuple[int, ...], float]:
    """log P of every ordered k-tuple of `Noise.top_k`, for small candidate sets.

    Gumbel noise on every score, the k largest in order: P(r₁, …, r_k) = Π_j softmax over what is left
    at r_j of scores/scale.
    """
    values = np.asarray(scores, dtype=np.float64).reshape(-1)
    law: dict[tuple[int, ...], float] = {}
    for picks in itertools.permutations(range(values.size), k):
        left = list(range(values.size))
        log_p = 0.0
        for pick in picks:
            log_p += float(log_law(values[left], scale)[left.index(pick)])
            left.remove(pick)
        law[picks] = log_p
    return law


Tails = Literal["apart", "lumped"]


def discrete_laplace_law(center: int, scale: float, support: range) -> dict[Hashable, float]:
    """P(center + z) = (1 - a)/(1 + a) a^|z| with a = e^{-1/scale}, on the integers.

    What lies outside `support` is lumped into `("below", start)` and `("above", last)`. For two
    centres inside the support the ratio is constant on each tail, so nothing is lost by that: the
    divergences are exact.
    """
    low, high = _bounds(support)
    if not low <= center <= high:
        raise InputError(f"center: {center}; expected one inside support {low}..{high}")
    if not (scale > 0 and math.isfinite(scale)):
        raise InputError(f"scale: {scale!r}; expected a positive number")
    decay = 1.0 / scale
    top = math.log(math.tanh(decay / 2.0))  # (1 - a)/(1 + a)
    tail = -math.log1p(math.exp(-decay))  # P(Z >= m) = a^m/(1 + a)
    law: dict[Hashable, float] = {x: top - abs(x - center) * decay for x in support}
    law["below", low] = tail - (center - low + 1) * decay
    law["above", high] = tail - (high - center + 1) * decay
    return law


def discrete_gaussian_law(
    center: int, sigma: float, support: range, *, tails: Tails = "apart"
) -> dict[Hashable, float]:
    """P(x) proportional to exp(-(x - center)²/(2 sigma²)) on the integers.

    tails="apart"    what lies outside `support` becomes an output that no other centre shares: all
                     of it counts as δ, so every divergence is overstated (Rényi's is infinite)
    tails="lumped"   one output below and one above; that is post-processing and understates, so
                     take a support that reaches centre + order · shift + many sigma
    """
    low, high = _bounds(support)
    if not (sigma > 0 and math.isfinite(sigma)):
        raise InputError(f"sigma: {sigma!r}; expected a positive number")
    reach = math.ceil(60.0 * sigma) + 1
    wide = np.arange(min(low, center - reach), max(high, center + reach) + 1)
    logs = -((wide - center) ** 2) / (2.0 * sigma**2)
    logs = logs - _log_sum(logs)
    law: dict[Hashable, float] = {x: float(logs[x - int(wide[0])]) for x in support}
    below, above = _log_sum(logs[wide < low]), _log_sum(logs[wide > high])
    if tails == "lumped":
        law["below", low], law["above", high] = below, above
    else:
        law["outside", center] = float(np.logaddexp(below, above))
    return law


def _bounds(support: range) -> tuple[int, int]:
    if len(support) == 0 or support.step != 1:
        raise InputError(f"support: {support!r}; expected a non-empty range of step 1")
    return support[0], support[-1]


def product_law(*laws: Law) -> dict[Hashable, float]:
    """The law of independent outputs, as tuples: a vector mechanism, coordinate by coordinate."""
    return {
        tuple(output for output, _ in parts): math.fsum(log_prob for _, log_prob in parts)
        for parts in itertools.product(*(law.items() for law in laws))
    }


# --- a whole game -------------------------------------------------------------------------------


def game_law(
    query: QueryPlayer,
    data: DataPlayer[Any],
    problem: Problem,
    plan: Plan,
    rows: Rows,
    *,
    relation: Relation,
    rows_public: int | None = None,
    noise: Callable[[Chooser], Noise] = ChoosingNoise,
    charges: Callable[[Plan, Relation], Charges] = StrictCharges,
    gate: Callable[..., Gate] = Gate,
) -> dict[Hashable, float]:
    """The exact law of everything a game releases about `rows`, through the real loop and gate.

    Every selection is played to every outcome (`enumerate_transcripts`); the outputs are the released
    answers, in order, of which the model is post-processing. Hold it against the plan with

        check(lambda rows: game_law(query, data, problem, plan, rows, relation=relation),
              neighbours(universe, n, relation), rho=float(accounting.total_rho(plan)))

    Only selections can be enumerated. `noise` may fix what a Gaussian draw released
    (`ChoosingNoise`), for the law given that. `charges` and `gate` are for broken
    twins, which the same check must catch.
    """

    def run(chooser: Chooser) -> Hashable:
        asked = gate(
            TinyCounts(problem.shape, rows),
            charges(plan, relation),
            relation,
            noise(chooser),
            rows_public,
        )
        played = play(problem, query, data, asked, np.random.default_rng(0))
        return tuple(fingerprint(answers) for answers in played.answers)

    return enumerate_transcripts(run)
