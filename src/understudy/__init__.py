"""understudy: a synthetic stand-in for a sensitive table, private, certified and verifiable.

    import understudy as us

    schema = us.Schema.load("patients.schema.toml")
    release = us.release("patients.parquet", schema, epsilon=1.0, workload=us.marginals(3))
    release.sample(10_000)                           # free, as often as you like
    release.certificate                              # worst error over the workload
    release.answer("age >= 65 and sex = 'F'")        # a share with a certified interval
    release.estimate("mean(income) by sex")          # statistics with estimated intervals
    release.save("patients.release")

Names load on first use, so that importing the package stays fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from understudy import errors
from understudy._lazy import lazily
from understudy._version import __version__

if TYPE_CHECKING:
    from understudy.estimates import Estimate, Estimates, logit, ols, statistic
    from understudy.game.methods import METHODS
    from understudy.privacy import Budget, Ledger, Relation
    from understudy.queries import Workload, marginals, workload
    from understudy.releases import Answer, Certificate, Release, epsilon_for, prepare
    from understudy.releases.graphs import release_graph, sample_graph
    from understudy.releases.run import release
    from understudy.releases.synthesizer import (
        AIM,
        DPGAN,
        DQRS,
        FEM,
        GEM,
        HDMM,
        MST,
        MWEM,
        DualQuery,
        FrankWolfe,
        GaussianMarginals,
        Independent,
        MaxEnt,
        QueryGAN,
        SepFEM,
        Synthesizer,
    )
    from understudy.releases.verify import verify
    from understudy.schema import Schema
    from understudy.source import read

__all__ = [
    "AIM",
    "DPGAN",
    "DQRS",
    "FEM",
    "GEM",
    "HDMM",
    "METHODS",
    "MST",
    "MWEM",
    "Answer",
    "Budget",
    "Certificate",
    "DualQuery",
    "Estimate",
    "Estimates",
    "FrankWolfe",
    "GaussianMarginals",
    "Independent",
    "Ledger",
    "MaxEnt",
    "QueryGAN",
    "Relation",
    "Release",
    "Schema",
    "SepFEM",
    "Synthesizer",
    "Workload",
    "__version__",
    "epsilon_for",
    "errors",
    "logit",
    "marginals",
    "ols",
    "prepare",
    "read",
    "release",
    "release_graph",
    "sample_graph",
    "statistic",
    "verify",
    "workload",
]

_HOMES = {
    "estimates": "Estimate Estimates logit ols statistic",
    "game.methods": "METHODS",
    "privacy.budget": "Budget",
    "privacy.ledger": "Ledger",
    "privacy.relation": "Relation",
    "queries": "Workload marginals workload",
    "releases.answer": "Answer",
    "releases.certificate": "Certificate",
    "releases.graphs": "release_graph sample_graph",
    "releases.plan": "epsilon_for prepare",
    "releases.release": "Release",
    "releases.run": "release",
    "releases.verify": "verify",
    "schema": "Schema",
    "source": "read",
}
_NAMED = {name: home for home, names in _HOMES.items() for name in names.split()}

# All others are methods as synthesizers.
__getattr__ = lazily(__name__, dict.fromkeys(__all__, "releases.synthesizer") | _NAMED)


def __dir__() -> list[str]:
    return sorted(__all__)
