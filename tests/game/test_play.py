"""The one loop, and which players may play in it."""

from fractions import Fraction

import numpy as np
import pytest

from tests.thorough import some
from understudy.errors import InputError, WorkError
from understudy.game import play, require_pair
from understudy.game.methods import METHODS, Method
from understudy.game.methods.independent import IndependentMethod
from understudy.game.methods.mwem import MWEMMethod
from understudy.game.methods.querygan import QueryGANMethod
from understudy.players.base import DataPlayer, Kind, Measured, Problem, kind_of
from understudy.players.data.ftpl import PerturbedLeader
from understudy.players.data.ftpl_generator import FTPLGenerator, Judged
from understudy.players.data.response import BestResponse
from understudy.players.query.fixed import FixedMarginals
from understudy.players.query.picking import ExponentialMechanism, QueryPicker
from understudy.privacy.cost import Charge, Plan, Selection
from understudy.privacy.gate import Gate
from understudy.privacy.relation import Relation
from understudy.progress import Progress
from understudy.queries import Family
from understudy.testing import SeededNoise, StrictCharges, TinyCounts, tiny_design
from understudy.testing.distributions import fingerprint

TABLE = Measured((0,), np.array([3, 2]), 1.0)


class Query:
    gives, needs = frozenset({Kind.TABLE}), ()

    def __init__(self, rounds, log):
        self.rounds, self._log = rounds, log

    def play(self, problem, gate, view, round):
        self._log.append(("play", gate, view, round))
        return (TABLE,)


class Data(DataPlayer):
    accepts, shows = frozenset({Kind.TABLE}), str

    def __init__(self, log):
        self._log = log

    def start(self, problem):
        return 0

    def view(self, problem, state):
        return f"view {state}"

    def respond(self, problem, state, answers, rng):
        self._log.append(("respond", state, answers))
        rng.random()
        return state + 1

    def finish(self, problem, state):
        return f"model {state}"


PROBLEM = Problem((2,), ((0,),), (1.0,), 5)


@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_the_players_take_turns(rounds):
    log, told = [], []
    played = play(
        PROBLEM, Query(rounds, log), Data(log), "gate", np.random.default_rng(0), told.append
    )
    assert played.model == f"model {rounds}"
    assert played.answers == ((TABLE,),) * rounds
    assert played.diagnostics == {}
    assert log == [
        entry
        for t in range(rounds)
        for entry in (("play", "gate", f"view {t}", t), ("respond", t, (TABLE,)))
    ]
    assert told == [Progress("playing", t, rounds) for t in range(rounds + 1)]


def test_an_answer_that_was_not_declared_is_an_error():
    query = Query(1, [])
    query.gives = frozenset()
    with pytest.raises(WorkError, match="Query gives noisy marginals, which it does not declare"):
        play(PROBLEM, query, Data([]), "gate", np.random.default_rng(0))


def test_nothing_more_is_asked_once_the_data_player_can_learn_no_more():
    log = []

    class Tired(Data):
        def over(self, state):
            return state == 2

    played = play(PROBLEM, Query(5, log), Tired(log), "gate", np.random.default_rng(0))
    assert len(played.answers) == 2
    assert [entry[3] for entry in log if entry[0] == "play"] == [0, 1]


SHAPE, ROWS = (2, 3, 2), 40
DESIGN = tiny_design(SHAPE, Relation.ADD_REMOVE, ROWS)
TINY = DESIGN.problem(ROWS)
RHO = Fraction(1, 2)

SMALL = {
    "aim": {"rounds": 6},
    "dpgan": {"steps": 2, "width": 4, "critic_width": 4, "fakes": 8, "checkpoints": 1, "pick": 1},
    "dqrs": {"rounds": 4, "samples": 3},
    "dualquery": {"rounds": 4, "samples": 3},
    "fem": {"rounds": 4, "samples": 20},
    "frankwolfe": {"rounds": 4},
    "gem": {"batch": 8, "width": 4, "steps": 20},
    "maxent": {"records": 1_000, "quanta": 2},
    "mwem": {"rounds": 3},
    "querygan": {"rounds": 3, "records": 30, "batch": 8, "width": 4},
    "sepfem": {"rounds": 4, "samples": 20},
}
MADE = {name: METHODS[name](**SMALL.get(name, {})) for name in METHODS} | {
    "mwem without measuring": MWEMMethod(rounds=3, measure=False),
    **{
        f"querygan, {oracle}": QueryGANMethod(oracle=oracle, **SMALL["querygan"])
        for oracle in ("exponential", "weights", "logistic")
    },
    "querygan, random features": QueryGANMethod(features="fourier", units=4, **SMALL["querygan"]),
}
PLANS = {name: Plan(method.charges(DESIGN, RHO)) for name, method in MADE.items()}
PAIRS = {name: method.players(DESIGN, PLANS[name]) for name, method in MADE.items()}

_PICK = Plan((Charge(QueryPicker.PICK, Selection(2.0**20, sensitivity=2**18), 3),))
_FAMILY = (Family((0, 1)),)
QUERIES = {name: (query, PLANS[name]) for name, (query, _) in PAIRS.items()} | {
    "queries of any class": (QueryPicker.over(3, _FAMILY, SHAPE), _PICK)
}
DATA = {name: data for name, (_, data) in PAIRS.items()}
DATA["fem"] = PerturbedLeader(9, samples=20)  # of its own rounds the last is not learned from
DATA["sepfem"] = PerturbedLeader(9, samples=20)
DATA["dqrs"] = DATA["dualquery"] = BestResponse(50)  # of more answers it takes a random part
NETS = ("dpgan", "gem", "querygan", "aim", "mst")
"""Data players that start JAX."""


def fits(query, data):
    """The rule in other words."""
    return (
        query.gives <= data.accepts
        and data.requires <= query.gives
        and all(issubclass(data.shows, needed) for needed in query.needs)
        and query.rounds <= (data.most_rounds() or query.rounds)
    )


def shown(data, problem, state):
    view, model = data.view(problem, state), data.finish(problem, state)
    tables = tuple(fingerprint(np.asarray(view.marginal(c))) for c in problem.cliques)
    # An oracle may find the same record without a query that it will still reckon with later.
    reckoned = state.latest if isinstance(data, BestResponse) else None
    reckoned = state.history if isinstance(data, PerturbedLeader) else reckoned
    # A network that is moved a little may draw the same few records.
    if isinstance(data, FTPLGenerator):
        begun = state.trained and np.asarray(state.trained.base)
        reckoned = (state.past and state.past.total, begun)
    paid = model.paid if isinstance(model, Judged) else None
    return tables, fingerprint(model), fingerprint(reckoned), fingerprint(paid)


def use(query, plan, data):
    """Play, and respond once more without every single answer: something must change."""
    rng = np.random.default_rng(5)
    rows = [tuple(int(rng.integers(size)) for size in SHAPE) for _ in range(ROWS)]
    charges = StrictCharges(plan, DESIGN.relation)
    gate = Gate(TinyCounts(SHAPE, rows), charges, DESIGN.relation, SeededNoise(2), ROWS)
    state = data.start(TINY)
    used = 0
    for round in range(query.rounds):
        answers = query.play(TINY, gate, data.view(TINY, state), round)
        after = data.respond(TINY, state, answers, np.random.default_rng(round))
        for k, answer in enumerate(answers):
            assert kind_of(answer) in query.gives
            others = answers[:k] + answers[k + 1 :]
            less = data.respond(TINY, state, others, np.random.default_rng(round))
            assert shown(data, TINY, less) != shown(data, TINY, after), (round, answer)
            used += 1
        state = after
    assert used > 0


@pytest.mark.parametrize("query", QUERIES)
def test_a_pair_is_refused_or_fits(query):
    asked = QUERIES[query][0]
    for learner in DATA.values():
        if fits(asked, learner):
            require_pair(asked, learner)
        else:
            with pytest.raises(InputError, match=f"cannot play against {type(learner).__name__}"):
                require_pair(asked, learner)


FITTING = [(q, d) for q in QUERIES for d in DATA if fits(QUERIES[q][0], DATA[d])]


def _heavy(query, data):
    return data.startswith(NETS) or query.startswith(("dpgan", "aim"))


def _named(heavy):
    return [pytest.param(*p, id=" against ".join(p)) for p in FITTING if _heavy(*p) == heavy]


@pytest.mark.parametrize(("query", "data"), some(_named(heavy=False), 4))
def test_a_pair_that_fits_uses_every_charged_answer(query, data):
    use(*QUERIES[query], DATA[data])


@pytest.mark.slow
@pytest.mark.parametrize(("query", "data"), _named(heavy=True))
def test_a_pair_with_a_network_uses_every_charged_answer(query, data):
    use(*QUERIES[query], DATA[data])


def test_every_data_player_has_a_partner_and_every_method_a_pair_that_fits():
    assert {data for _, data in FITTING} == set(DATA)
    assert {query for query, _ in FITTING} == set(QUERIES)
    for name, (query, data) in PAIRS.items():
        require_pair(query, data)
        Method.confirm(MADE[name], DESIGN, PLANS[name])
    assert len(FITTING) < len(QUERIES) * len(DATA) / 2  # and most others are refused


def test_a_wrong_pair_is_refused_before_anything_is_spent():
    class Wrong(IndependentMethod):
        def players(self, design, plan):
            return IndependentMethod.players(self, design, plan)[0], DATA["mwem"]

    method = Wrong()
    with pytest.raises(InputError, match="noisy marginals, which would be paid for and not used"):
        method.confirm(DESIGN, Plan(method.charges(DESIGN, RHO)))


def test_measured_counts_do_not_go_to_players_that_look_at_sides_alone():
    measuring = ExponentialMechanism(2, 1.0)
    for name in ("frankwolfe", "dualquery", "fem"):
        with pytest.raises(InputError, match="noisy counts of cells"):
            require_pair(measuring, DATA[name])
    require_pair(ExponentialMechanism(2, None), DATA["frankwolfe"])


def test_a_game_longer_than_the_data_player_lasts_is_refused():
    with pytest.raises(InputError, match="plays 10 rounds, of which the data player learns from 9"):
        require_pair(ExponentialMechanism(10, None), DATA["fem"])


def test_what_a_network_accepts_follows_from_its_settings():
    assert Kind.PICKED_CELL in FTPLGenerator(3).accepts
    assert Kind.CRITIC not in FTPLGenerator(3).accepts
    assert Kind.CRITIC in FTPLGenerator(3, features=((0, 1),)).accepts
    assert Kind.PAYOFF in FTPLGenerator(3).accepts
    assert Kind.PAYOFF not in FTPLGenerator(3, whole=True).accepts


def test_players_must_say_what_they_accept():
    class Silent(DataPlayer):
        def start(self, problem): ...
        def view(self, problem, state): ...
        def respond(self, problem, state, answers, rng): ...
        def finish(self, problem, state): ...

    with pytest.raises(AttributeError, match="accepts"):
        require_pair(FixedMarginals(((0,),), 1.0), Silent())
