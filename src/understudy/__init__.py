"""understudy: a synthetic stand-in for a sensitive table, private, certified and verifiable.

    import understudy as us

    schema = us.Schema.load("patients.schema.toml")
    release = us.release("patients.parquet", schema, epsilon=1.0, workload=us.marginals(3))
    release.sample(10_000)                           # free, as often as you like
    release.certificate                              # worst error over the workload
    release.answer("age >= 65 and sex = 'F'")        # an estimate with a certified interval
    release.save("patients.release")

Names load on first use, so that importing the package stays fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from understudy import errors
from understudy._version import __version__

if TYPE_CHECKING:
    from understudy.game.methods import METHODS
    from understudy.privacy import Budget, Ledger, Relation
    from understudy.queries import Workload, marginals, workload
    from understudy.releases import Answer, Certificate, Release, epsilon_for, prepare, release
    from understudy.releases.graphs import release_graph, sample_graph
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
    "FrankWolfe",
    "GaussianMarginals",
    "Independent",
    "Ledger",
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
    "marginals",
    "prepare",
    "read",
    "release",
    "release_graph",
    "sample_graph",
    "verify",
    "workload",
]

_HOME = {
    "AIM": "understudy.releases.synthesizer",
    "GaussianMarginals": "understudy.releases.synthesizer",
    "DPGAN": "understudy.releases.synthesizer",
    "DQRS": "understudy.releases.synthesizer",
    "DualQuery": "understudy.releases.synthesizer",
    "FEM": "understudy.releases.synthesizer",
    "FrankWolfe": "understudy.releases.synthesizer",
    "GEM": "understudy.releases.synthesizer",
    "HDMM": "understudy.releases.synthesizer",
    "SepFEM": "understudy.releases.synthesizer",
    "METHODS": "understudy.game.methods",
    "MST": "understudy.releases.synthesizer",
    "MWEM": "understudy.releases.synthesizer",
    "Answer": "understudy.releases",
    "Budget": "understudy.privacy",
    "Certificate": "understudy.releases",
    "Independent": "understudy.releases.synthesizer",
    "Ledger": "understudy.privacy",
    "QueryGAN": "understudy.releases.synthesizer",
    "Relation": "understudy.privacy",
    "Release": "understudy.releases",
    "Schema": "understudy.schema",
    "Synthesizer": "understudy.releases.synthesizer",
    "Workload": "understudy.queries",
    "marginals": "understudy.queries",
    "epsilon_for": "understudy.releases",
    "prepare": "understudy.releases",
    "read": "understudy.source",
    "release": "understudy.releases",
    "release_graph": "understudy.releases.graphs",
    "sample_graph": "understudy.releases.graphs",
    "verify": "understudy.releases.verify",
    "workload": "understudy.queries",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'understudy' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
