"""Rejection recycling: the query player of DQRS, which keeps queries as well as drawing new ones.

docs/methods/dqrs.md has the game. In rows, with B_t = n/η_t, the number of rows cancels:

    coin:   ln a = −γ − (n − s)/B_t,  s the score against x^t;    ρ = 1/(8·B_t²·(1−e^{−γ})²)
    draw:   b_t = B_t/t rows, from the t responses so far;        ρ = t²/(2·B_t²)

A round recycles only where its coins cost less than the s − s~ draws they stand for, which is public.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from understudy._types import Bools, Floats, Whole
from understudy.players.base import Answers, Kind, Problem, View
from understudy.players.data.response import Responses
from understudy.players.query.weights import QueryWeights
from understudy.privacy.accounting import total_rho
from understudy.privacy.buckets import SCORE_SENSITIVITY, UNIT
from understudy.privacy.cost import Charge, Plan, Selection
from understudy.privacy.gate import Gate
from understudy.privacy.questions import BernoulliRejection, rejection_scale

GAMMA = 0.3
"""γ: a coin comes up with probability at most e^−γ."""
_COIN = 1 / (8 * math.expm1(-GAMMA) ** 2)  # ρ·B² of one coin


@dataclass(frozen=True, slots=True)
class Recycling:
    """`scale` is B after the last draw, in rows; `recycled` are the rounds that keep queries."""

    rounds: int
    scale: float
    recycled: frozenset[int] = frozenset()

    gives = frozenset({Kind.PICKED_CELL})
    needs = (Responses,)

    @staticmethod
    def coins(t: int) -> str:
        """The charge for the coins that decide what round t keeps."""
        return f"coins of round {t}"

    @classmethod
    def charges(cls, rounds: int, samples: int, fresh: int, rho: Fraction) -> tuple[Charge, ...]:
        """The smallest B, so the largest η = n/B, for which coins and draws cost at most ρ."""
        t = np.arange(1, rounds)
        recycled = _COIN * samples < (samples - fresh) * t**2 / 2
        draws = np.where(recycled, fresh, samples)
        worth = (recycled * _COIN * samples + draws * t**2 / 2) / _rising(t, rounds) ** 2
        scale = math.sqrt(float(worth.sum()) / float(rho)) * (1 + 1e-12)
        while True:
            charges = cls._at(samples, draws, recycled, scale)
            if total_rho(Plan(charges)) <= rho:
                return charges
            scale *= 1 + 1e-13

    @classmethod
    def _at(cls, samples: int, draws: Whole, recycled: Bools, scale: float) -> tuple[Charge, ...]:
        """The charges where B ends at `scale` rows."""
        charges: list[Charge] = []
        for t, (number, tossed) in enumerate(zip(draws, recycled, strict=True), 1):
            own = scale * float(_rising(t, len(draws) + 1))
            if tossed:
                gumbel = rejection_scale(own * SCORE_SENSITIVITY / UNIT, GAMMA)
                coin = Selection(gumbel, SCORE_SENSITIVITY, samples)
                charges.append(Charge(cls.coins(t + 1), coin))
            draw = Selection(SCORE_SENSITIVITY * own / t, SCORE_SENSITIVITY, int(number))
            charges.append(Charge(QueryWeights.purpose(t + 1), draw))
        return tuple(charges)

    @classmethod
    def of(cls, plan: Plan) -> Recycling:
        """The player that a plan of `charges` was made for."""
        rounds, _, scale = QueryWeights.read(plan)
        purposes = {charge.purpose for charge in plan}
        recycled = frozenset(t for t in range(2, rounds + 1) if cls.coins(t) in purposes)
        return cls(rounds, scale / UNIT, recycled)

    def play(self, problem: Problem, gate: Gate, view: View, round: int) -> Answers:
        """See `QueryPlayer.play`: what the coins keep, and what is drawn anew."""
        if round == 0:
            return ()
        kept: Answers = ()
        if round + 1 in self.recycled:
            assert isinstance(view, Responses)  # by `needs`
            before = view.latest[0]
            cells = [query.cell for query in before]
            scale = self.scale * float(_rising(round, self.rounds))
            rejection = BernoulliRejection(
                problem.cliques, cells, view.newest, problem.rows, scale, GAMMA
            )
            coins = gate.ask(self.coins(round + 1), rejection)
            kept = tuple(query for query, coin in zip(before, coins, strict=True) if coin)
        return (*kept, *QueryWeights.draw(problem, gate, view, round + 1))


def _rising(t: int | Whole, rounds: int) -> Floats:
    """B_t in parts of the last: η falls as t^(−1/4)."""
    return (np.asarray(t) / (rounds - 1)) ** 0.25
