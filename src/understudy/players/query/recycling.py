"""Rejection recycling: the query player of DQRS, which keeps queries instead of drawing all anew.

A draw from Q^t that is kept with probability a_t(q) = exp(−η − γ_t + η(q(D) − q(x^t))) is a draw from
Q^{t+1} ∝ Q^t·a_t, for responses x^t that do not depend on it. A kept query costs a coin where a new one
costs a selection over the whole class. In rows, with B = n/η, the number of rows cancels from costs:

    coin:   ln a = −γ_t − (n − s)/B,  s the score against x^t;    ρ = 1/(8·B²·(1−e^{−γ_t})²)
    draw:   b_t = B/t rows, from the t responses so far;          ρ = t²/(2·B²)

γ_t = 1/(2t^{2/3}). Of s queries about (γ_t + η)s are lost in a round; s~_t = min(s, ⌈(2γ_t + 4η)s⌉) are
drawn anew, and the data player keeps a random s of what was kept and drawn. A round recycles only where
that is cheaper than s new draws, which is public: never where η ≥ 1/4, for then s~_t = s.

x^t is an answer to the very queries that are kept, so what is kept is not an independent sample of
Q^{t+1}: the published accuracy proof has a gap there. Privacy is not touched by it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from understudy.errors import InputError
from understudy.players.base import Answers, Kind, Problem, View
from understudy.players.data.response import Responses
from understudy.players.query.weights import QueryWeights
from understudy.privacy.accounting import total_rho
from understudy.privacy.buckets import SCORE_SENSITIVITY, UNIT
from understudy.privacy.cost import Charge, Plan, Selection
from understudy.privacy.gate import Gate
from understudy.privacy.questions import BernoulliRejection, rejection_scale

__all__ = ["Recycling", "fresh", "gamma"]


def gamma(t: int) -> float:
    """The margin of the coins that follow response t."""
    return 0.5 * t ** (-2 / 3)


def fresh(t: NDArray[np.int64], samples: int, eta: float) -> NDArray[np.int64]:
    """s~_t: how many queries are drawn anew after response t, where others are kept."""
    many = np.ceil((t ** (-2 / 3) + 4 * eta) * samples)
    return np.minimum(samples, many).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Recycling:
    """`scale` is B in rows; `recycled` are the rounds whose queries are partly kept from the last."""

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
    def charges(cls, rounds: int, samples: int, rows: int, rho: Fraction) -> tuple[Charge, ...]:
        """The smallest B, so the largest η = n/B, for which coins and draws cost at most ρ."""
        scale = _solve(rounds, samples, rows, float(rho))
        charges = cls._at(rounds, samples, rows, scale)
        while total_rho(Plan(charges)) > rho:
            scale *= 1 + 1e-13
            charges = cls._at(rounds, samples, rows, scale)
        return charges

    @classmethod
    def _at(cls, rounds: int, samples: int, rows: int, scale: float) -> tuple[Charge, ...]:
        charges: list[Charge] = []
        step = scale * SCORE_SENSITIVITY / UNIT
        draws, recycles = _draws(rounds, samples, rows, scale)
        for t, number, recycled in zip(range(1, rounds), draws, recycles, strict=True):
            if recycled:
                coin = Selection(rejection_scale(step, gamma(t)), SCORE_SENSITIVITY, samples)
                charges.append(Charge(cls.coins(t + 1), coin))
            draw = Selection(SCORE_SENSITIVITY * scale / t, SCORE_SENSITIVITY, int(number))
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
            if not isinstance(view, Responses):
                raise InputError("recycling needs a data player that lists its queries")
            before = view.latest[0]
            cells = [query.cell for query in before]
            rejection = BernoulliRejection(
                problem.cliques, cells, view.newest, problem.rows, self.scale, gamma(round)
            )
            coins = gate.ask(self.coins(round + 1), rejection)
            kept = tuple(query for query, coin in zip(before, coins, strict=True) if coin)
        return (*kept, *QueryWeights.draw(problem, gate, view, round + 1))


def _draws(
    rounds: int, samples: int, rows: int, scale: float
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """(new draws, whether the rest is recycled) after every response t = 1..T−1."""
    t = np.arange(1, rounds)
    few = fresh(t, samples, rows / scale)
    recycled = _coin(t) * samples + few * t**2 / 2 < samples * t**2 / 2
    return np.where(recycled, few, samples), recycled


def _coin(t: NDArray[np.int64]) -> NDArray[np.float64]:
    """ρ·B² of one coin."""
    return 1 / (8 * np.expm1(-0.5 * t ** (-2 / 3)) ** 2)


def _solve(rounds: int, samples: int, rows: int, rho: float) -> float:
    """The smallest B with cost at most ρ: the cost falls as B grows, since s~_t falls with η."""
    t = np.arange(1, rounds)

    def excess(scale: float) -> float:
        draws, recycled = _draws(rounds, samples, rows, scale)
        worth = float((recycled * _coin(t) * samples + draws * t**2 / 2).sum())
        return worth / (scale * scale) - rho

    # Without recycling the cost is known; with it, at least one of s draws is left.
    high = math.sqrt(samples * float((t**2).sum()) / (2 * rho)) * (1 + 1e-12)
    low = high / (2 * math.sqrt(samples))
    for _ in range(60):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if excess(middle) <= 0 else (middle, high)
    return high
