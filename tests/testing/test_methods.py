"""Every registered method keeps the methods' contract, and bad ones are found out."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest

from tests.thorough import examples, slow
from understudy.errors import InputError
from understudy.game.methods import METHODS
from understudy.game.methods.dpgan import DPGANMethod
from understudy.game.methods.gem import GEMMethod
from understudy.game.methods.independent import IndependentMethod
from understudy.game.methods.mst import MSTMethod
from understudy.game.methods.mwem import MWEMMethod
from understudy.game.methods.querygan import QueryGANMethod
from understudy.players.data.maxent import MaximumEntropy
from understudy.players.query.fixed import FixedMarginals
from understudy.privacy import planning
from understudy.privacy.cost import Charge
from understudy.testing import ContractBroken, check_method, method_checks

OURS = {name: make() for name, make in METHODS.items()} | {
    "mwem without measurement": MWEMMethod(measure=False, rounds=3),
    "mwem, two rounds": MWEMMethod(rounds=2, replays=1),
    # As small as can be: contracts do not depend on how well they learn.
    "dpgan": DPGANMethod(
        steps=3, width=4, latent=4, critic_width=4, fakes=8, pick=1, checkpoints=1
    ),
    "dualquery": METHODS["dualquery"](rounds=4, samples=3),
    "fem": METHODS["fem"](rounds=4, samples=20),
    "gem": GEMMethod(picks=2, batch=8, width=4, latent=4, steps=10),
    "querygan": QueryGANMethod(rounds=2, batch=8, width=4, records=50),
    "mst, other shares": MSTMethod(one_ways=1 / 3, selection=1 / 3, pairs=0.7, iterations=20),
}


SHAPES = ((2, 3), (3,), (2, 3, 2))
DEAR = {"dpgan", "dqrs", "gem", "querygan", "sepfem"}  # others of their kind stay


NEIGHBOURS = ("add-remove, private rows", "add-remove, public rows", "replace, public rows")


@pytest.mark.parametrize("name", [slow(name) if name in DEAR else name for name in OURS])
def test_our_methods_conform(name):
    """In `make test` against one kind of neighbours, of which each method has its turn."""
    checks = [*method_checks(OURS[name], shapes=SHAPES[: examples(1, 3)])]
    assert len(checks) >= 8
    turn = NEIGHBOURS[[*OURS].index(name) % 3]
    for check in checks:
        if examples(0, 1) or turn in str(check) or "rows" not in str(check):
            check()


def test_checks_are_yielded_one_by_one_with_names():
    names = [str(check) for check in method_checks(IndependentMethod())]
    assert len(set(names)) == len(names)
    assert all(name.startswith("method: ") for name in names)


@dataclass(frozen=True)
class Good(IndependentMethod):
    name: str = "good"


class CostsMore(Good):
    def charges(self, design, rho):
        return super().charges(design, rho * Fraction(1_000_001, 1_000_000))


class RoundsDown(Good):
    """Off by one unit in the last place of sigma."""

    def charges(self, design, rho):
        (charge,) = super().charges(design, rho)
        sigma = np.nextafter(charge.event.sigma, 0)
        return (replace(charge, event=replace(charge.event, sigma=float(sigma))),)


class ForgetsReplace(Good):
    """Plans replacement with the noise of add-remove: the gate does not cover it."""

    def charges(self, design, rho):
        return (Charge(self.ONE_WAY, planning.gaussian(rho, changes=len(design.shape))),)


class NamesTwice(Good):
    def charges(self, design, rho):
        return (*super().charges(design, rho / 2), *super().charges(design, rho / 2))


class PlansNothing(Good):
    def charges(self, design, rho):
        return ()


class PlansAtRandom(Good):
    def charges(self, design, rho):
        return super().charges(design, rho * Fraction(np.random.default_rng().random()))


class DrawsTwice(Good):
    def players(self, design, plan):
        query, data = super().players(design, plan)
        return replace(query, rounds=2), data


class Peeks(Good):
    @dataclass
    class Player:
        inner: FixedMarginals
        rounds: int = 1

        gives, needs = FixedMarginals.gives, FixedMarginals.needs

        def play(self, problem, gate, view, round):
            (exact,) = gate.ask.__self__._rows.marginals([(0,)])
            first, *rest = self.inner.play(problem, gate, view, round)
            return (replace(first, values=exact), *rest)

    def players(self, design, plan):
        query, data = super().players(design, plan)
        return self.Player(query), data


class LooksBehind(Peeks):
    class Player(Peeks.Player):
        def play(self, problem, gate, view, round):
            gate._rows.marginals([(0,)])
            return self.inner.play(problem, gate, view, round)


class GivesAnotherShape(Good):
    @dataclass(frozen=True)
    class Data(MaximumEntropy):
        def finish(self, problem, state):
            wide = replace(problem, shape=(*problem.shape, 2))
            return MaximumEntropy.finish(self, wide, MaximumEntropy.start(self, wide))

    def players(self, design, plan):
        return super().players(design, plan)[0], self.Data()


class RefusesAll(Good):
    def check(self, design):
        raise InputError("never")


class CannotBeWrittenDown(Good):
    def describe(self):
        return {"name": self.name, "rho": Fraction(1, 3)}


class TakesForEver(Good):
    def forecast(self, design, plan, rows):
        return replace(super().forecast(design, plan, rows), seconds=math.inf)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (CostsMore, "1 times what was given|costs rho"),
        (RoundsDown, "costs rho"),
        (ForgetsReplace, "does not cover"),
        (NamesTwice, "each purpose once"),
        (PlansNothing, "at least one"),
        (PlansAtRandom, "another plan the second time"),
        (DrawsTwice, "planned draws have been made"),
        (Peeks, "everything is post-processing"),
        (LooksBehind, "'_rows' of the gate"),
        (GivesAnotherShape, "the model has shape"),
        (RefusesAll, "refuses every design"),
        (CannotBeWrittenDown, "says what it is"),
        (TakesForEver, "no expectation"),
    ],
)
def test_bad_methods_are_found_out(bad, message):
    with pytest.raises(ContractBroken, match=message):
        check_method(bad())


def test_the_good_method_alone_is_fine():
    check_method(Good())
