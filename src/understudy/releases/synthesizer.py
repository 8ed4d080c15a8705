"""Methods as objects with the habits of SDV and scikit-learn: fit, sample, save, load, get_params."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, Self

from understudy.errors import InputError
from understudy.game.methods import method as named_method
from understudy.releases.options import Options
from understudy.releases.release import Release
from understudy.releases.run import release
from understudy.schema import Schema

_COMMON = ("delta", "workload", "purpose", "neighbours", "rows_public", "beta", "variations")
"""Options that belong to a synthesizer; `fit` takes the others."""


class Synthesizer:
    """Fits a private synthetic stand-in. `fit` spends ε once; `sample` is free.

    Keyword arguments are those of `understudy.release`, and the public settings of the method.
    """

    method: ClassVar[str] = "auto"

    def __init_subclass__(cls, method: str | None = None) -> None:
        """A class for one method of `understudy methods`."""
        super().__init_subclass__()
        cls.method = cls.method if method is None else method

    def __init__(self, epsilon: float | str = 1.0, **parameters: Any) -> None:
        defaults = Options()
        self._parameters: dict[str, Any] = {"epsilon": epsilon}
        self._parameters |= {name: vars(defaults)[name] for name in _COMMON}
        self._settings: dict[str, Any] = {}
        self._release: Release | None = None
        self.set_params(**parameters)

    def __repr__(self) -> str:
        """As scikit-learn shows it: what differs from the defaults, and whether it is fitted."""
        usual = vars(Options()) | {"epsilon": None}
        params = self.get_params().items()
        told = ", ".join(f"{name}={value!r}" for name, value in params if value != usual.get(name))
        fitted = "" if self._release is None else f", fitted: {self._release.size_in_words}"
        return f"{type(self).__name__}({told}){fitted}"

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """All parameters by name."""
        return {**self._parameters, **self._settings}

    def set_params(self, **parameters: Any) -> Self:
        """Change parameters; unknown names are refused."""
        known = named_method(self.method)
        own = set(known.describe()) - {"name"}
        for name, value in parameters.items():
            if name in self._parameters:
                self._parameters[name] = value
            elif name in own:
                self._settings[name] = value
            else:
                choices = ", ".join(sorted({*self._parameters, *own}))
                raise InputError(
                    f"{type(self).__name__}: {name!r} is not a parameter; it has {choices}"
                )
        return self

    def fit(self, table: Any, schema: Schema | str | Path | None = None, **how: Any) -> Self:
        """Make the release; without a schema, an error says how to draft one.

        `how` may hold progress and the other `Options`: ledger, key, rows, …
        """
        self._release = release(
            table, schema, method=self.method, parameters=self._settings, **self._parameters, **how
        )
        return self

    @property
    def release(self) -> Release:
        """What `fit` made."""
        if self._release is None:
            raise InputError(f"{type(self).__name__} is not fitted; call fit(table, schema) first")
        return self._release

    def sample(self, num_rows: int | None = None, *, key: int | None = None) -> Any:
        """Fresh synthetic rows; free."""
        return self.release.sample(num_rows, key=key)

    def save(self, path: str | Path) -> Path:
        """Write the release folder."""
        return self.release.save(path)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a release folder."""
        loaded = cls()
        loaded._release = Release.load(path)
        return loaded


class MaxEnt(Synthesizer, method="maxent"):
    """The default: pairs measured and selected under a maximum-entropy model of records."""


class Independent(Synthesizer, method="independent"):
    """Every column by itself."""


class AIM(Synthesizer, method="aim"):
    """Adaptive rounds under a maximum-entropy model, on mbi."""


class GEM(Synthesizer, method="gem"):
    """A generator network against selected and measured marginals."""


class GaussianMarginals(Synthesizer, method="gaussian"):
    """Every marginal of the workload with the same noise, then reconstructed."""


class MST(Synthesizer, method="mst"):
    """A private spanning tree of pairs under a maximum-entropy model."""


class MWEM(Synthesizer, method="mwem"):
    """Multiplicative weights with the exponential mechanism, for universes that fit."""


class DPGAN(Synthesizer, method="dpgan"):
    """A generator network against a critic that is trained privately; needs the extra `nets`."""


class DQRS(Synthesizer, method="dqrs"):
    """DualQuery with recycled samples."""


class DualQuery(Synthesizer, method="dualquery"):
    """Sampled multiplicative weights over queries against best responses."""


class FEM(Synthesizer, method="fem"):
    """The exponential mechanism against the perturbed leader."""


class FrankWolfe(Synthesizer, method="frankwolfe"):
    """Frank-Wolfe on the entropic dual, for universes that fit."""


class HDMM(Synthesizer, method="hdmm"):
    """Marginals measured with an optimised strategy, then reconstructed."""


class QueryGAN(Synthesizer, method="querygan"):
    """Private critics against a generator network; needs the extra `nets`."""


class SepFEM(Synthesizer, method="sepfem"):
    """FEM with Laplace noise on a separator set."""
