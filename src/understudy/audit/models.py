"""The audit of a learner: models trained with and without canaries, and what they betray.

The rows that shadows are trained on must be rows that may be known: held out and named by the
custodian, public, or synthetic. Canaries are planted (corners of the features' box with labels by lot,
which a model can only learn by heart) or rows that the custodian names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from understudy._types import Floats, Whole
from understudy.audit import inside, judge, scores, shadows
from understudy.audit.runs import fingerprint
from understudy.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa


_MOST_VALUES = 50
_LOOSE = 100.0
"""The weight of the rows against that of the penalty, without privacy: little holds it back."""


@dataclass(frozen=True, slots=True, eq=False)
class Examples:
    """Rows with labels 0, 1, …, checked before anything is trained."""

    features: Floats
    labels: Whole
    names: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.labels)

    def require(self, classes: int | None = None) -> None:
        """Refuse what no model can be trained on.

        Raises:
            InputError: Naming the column.
        """
        if self.features.ndim != 2 or len(self.features) != len(self):
            raise InputError(
                f"features {self.features.shape} and {len(self)} labels do not belong together: "
                f"give one label for each row"
            )
        if len(self) == 0:
            raise InputError("there are no rows; give a table with rows that may be known")
        seen = np.unique(self.labels)
        if classes is None and len(seen) < 2:
            raise InputError(
                "the labels have one class only, so there is nothing to learn; give another --label"
            )
        for column in range(self.features.shape[1]):
            values = self.features[:, column]
            if not np.isfinite(values).all():
                raise InputError(
                    f"column {self._name(column)} holds values that are not finite numbers; fill "
                    f"or drop them"
                )
            if classes is None and len(values) > 1 and values.min() == values.max():
                raise InputError(
                    f"column {self._name(column)} is constant ({values[0]:g}); drop it, no model "
                    f"can use it"
                )

    def _name(self, column: int) -> str:
        return repr(self.names[column]) if self.names else str(column)


class Layout:
    """How the columns of one table become features: numbers as they are, text as indicators."""

    def __init__(self, table: pa.Table, label: str) -> None:
        import pyarrow as pa

        if label not in table.column_names:
            raise InputError(
                f"label = {label!r} is not a column; there are {', '.join(table.column_names)}"
            )
        self.label = label
        self.classes: list[object] = sorted(
            {value for value in table[label].to_pylist() if value is not None}, key=str
        )
        self.text: dict[str, list[str]] = {}
        self.plain: list[str] = []
        for name in table.column_names:
            if name == label:
                continue
            kind = table.schema.field(name).type
            if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
                self.plain.append(name)
            elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
                values = sorted({v for v in table[name].to_pylist() if v is not None})
                if len(values) > _MOST_VALUES:
                    raise InputError(
                        f"column {name!r} has {len(values)} different texts, more than "
                        f"{_MOST_VALUES}; drop it, or put them into groups"
                    )
                self.text[name] = values
            else:
                raise InputError(
                    f"column {name!r} is of type {kind}; features are numbers, booleans or text"
                )
        if not self.plain and not self.text:
            raise InputError(f"the table has no column but the label {label!r}")

    def examples(self, table: pa.Table) -> Examples:
        """Features and labels of a table with these columns."""
        missing = {self.label, *self.plain, *self.text} - set(table.column_names)
        if missing:
            raise InputError(f"the table lacks the column {sorted(missing)[0]!r}")
        columns: list[Floats] = []
        names: list[str] = []
        for name in self.plain:
            values = table[name].to_pylist()
            columns.append(np.array([np.nan if v is None else float(v) for v in values]))
            names.append(name)
        for name, values in self.text.items():
            here = np.array(table[name].to_pylist(), dtype=object)
            for value in values[1:]:  # the first is what the others are compared with
                columns.append((here == value).astype(float))
                names.append(f"{name} = {value}")
        return Examples(np.column_stack(columns), self._labels(table), tuple(names))

    def _labels(self, table: pa.Table) -> Whole:
        known = {value: code for code, value in enumerate(self.classes)}
        found: Sequence[object] = table[self.label].to_pylist()
        odd = next((value for value in found if value not in known), None)
        if odd is not None or None in found:
            raise InputError(f"label {self.label!r} has no class {odd!r}; known are {self.classes}")
        return np.array([known[value] for value in found], dtype=np.int64)


class Learner(Protocol):
    """From rows to a model. It travels to other processes, so it is plain data."""

    def describe(self) -> dict[str, Any]:
        """What it is, in JSON."""
        ...

    def __call__(self, features: Floats, labels: Whole) -> Any:
        """A trained model with `predict_proba`; labels are 0, 1, …"""
        ...


@dataclass(frozen=True, eq=False)
class Logistic:
    """understudy's private logistic regression; without an `epsilon` that of scikit-learn."""

    classes: int
    bounds: tuple[tuple[float, ...], tuple[float, ...]]
    """Low and high of every feature, public."""
    epsilon: float | None
    delta: float
    rows_public: int
    choices: Mapping[str, Any] = field(default_factory=dict)
    """Further settings of the estimator: solver, radius, steps, …"""

    def describe(self) -> dict[str, Any]:
        """The estimator and its settings."""
        return {
            "learner": "logistic",
            "private": self.epsilon is not None,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "classes": self.classes,
            "rows_public": self.rows_public,
            **{name: self.choices[name] for name in sorted(self.choices)},
        }

    def __call__(self, features: Floats, labels: Whole) -> Any:
        """Train once; privacy noise takes no seed."""
        if self.epsilon is None:
            from sklearn.linear_model import LogisticRegression
            from sklearn.pipeline import make_pipeline
            from sklearn.preprocessing import MinMaxScaler

            model = make_pipeline(MinMaxScaler(), LogisticRegression(C=_LOOSE, max_iter=1_000))
            return model.fit(features, labels)
        from understudy.learn import PrivateLogisticRegression

        given: dict[str, Any] = {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "rows_public": self.rows_public,
            "bounds": tuple(np.array(end) for end in self.bounds),
            "classes": list(range(self.classes)),
        }
        return PrivateLogisticRegression(**given, **self.choices).fit(features, labels)


@dataclass(frozen=True)
class Own:
    """A model of the user's: `module:factory`, where factory() gives an estimator to be fitted."""

    where: str

    def describe(self) -> dict[str, Any]:
        """Where it comes from."""
        return {"learner": self.where}

    def __call__(self, features: Floats, labels: Whole) -> Any:
        """Make a fresh one and train it."""
        return self.make().fit(features, labels)

    def make(self) -> Any:
        """An estimator, not yet trained.

        Raises:
            InputError: It cannot be imported, or has no `fit` or no `predict_proba`.
        """
        module, _, name = self.where.partition(":")
        if not module or not name:
            raise InputError(
                f"learner = {self.where!r} must be logistic, or module:factory for one of your own"
            )
        try:
            factory = getattr(import_module(module), name)
        except (ImportError, AttributeError) as error:
            raise InputError(f"learner = {self.where} cannot be imported: {error}") from None
        made = factory()
        for needed, why in (("fit", "trained"), ("predict_proba", "attacked")):
            if not hasattr(made, needed):
                raise InputError(
                    f"learner = {self.where}: {type(made).__name__} has no {needed}, so it cannot "
                    f"be {why}; give a classifier with fit(X, y) and predict_proba(X)"
                )
        return made


@dataclass(frozen=True, eq=False)
class Trained:
    """One design: a learner, known rows and canaries. A run flips the coins and trains."""

    learner: Learner
    known: Examples
    canaries: Examples
    key: int

    what = "model"

    def __post_init__(self) -> None:
        self.known.require()
        self.canaries.require(classes=int(self.known.labels.max()) + 1)
        if len(self.canaries) > len(self.known):
            raise InputError(
                f"canaries = {len(self.canaries)} are more than the rows to hide them in, "
                f"{len(self.known)}; give fewer canaries or more rows"
            )

    def describe(self) -> dict[str, Any]:
        """The learner, the rows by their digest, and the key of the coins."""
        rows = fingerprint(
            self.known.features, self.known.labels, self.canaries.features, self.canaries.labels
        )
        return {"learner": self.learner.describe(), "rows": rows, "key": self.key}

    def run(self, number: int) -> dict[str, NDArray[Any]]:
        """Flip, train, look at every canary."""
        rng = np.random.default_rng([self.key, number])
        members = rng.random(len(self.canaries)) < 0.5
        order = rng.permutation(len(self.known) + int(members.sum()))
        rows = np.vstack([self.known.features, self.canaries.features[members]])[order]
        labels = np.concatenate([self.known.labels, self.canaries.labels[members]])[order]
        model = self.learner(rows, labels)
        chances = probabilities(model, self.canaries.features)
        found: dict[str, NDArray[Any]] = {"inside": members}
        for name, score in scores.SCORES.items():
            found[f"score {name}"] = score(chances, self.canaries.labels)
        found["logit"] = scores.logit(chances, self.canaries.labels)
        found["black box"] = scores.black_box(chances, self.canaries.labels)
        if inside.has_inside(model):
            found["white box"] = inside.white_box(
                model, self.canaries.features, chances, self.canaries.labels
            )
        return found

    def attacks(self, found: Mapping[str, NDArray[Any]], parts: judge.Parts) -> dict[str, Floats]:
        """LiRA, and networks that were shown the outside or the inside of models."""
        made: dict[str, Floats] = {}
        members, logits = found["inside"], found["logit"]
        learnt = members[parts.fit]
        if learnt.all() or not learnt.any():
            return made
        made["LiRA online"] = shadows.lira_online(logits, logits[parts.fit], learnt)
        made["LiRA offline"] = shadows.lira_offline(logits, logits[parts.fit], learnt)
        for name in ("black box", "white box"):
            if name in found:
                width = found[name].shape[-1]
                shown = found[name][parts.fit].reshape(-1, width)
                attacker = shadows.train_network(shown, learnt.reshape(-1), key=self.key)
                score = attacker(found[name].reshape(-1, width))
                made[f"network, {name}"] = score.reshape(members.shape)
        return made


def probabilities(model: Any, rows: Floats) -> Floats:
    """What the model says, checked.

    Raises:
        InputError: It has no `predict_proba`, or that gives no probabilities.
    """
    if not hasattr(model, "predict_proba"):
        raise InputError(
            f"the model {type(model).__name__} has no predict_proba; attacks read probabilities: "
            f"give a classifier that has it"
        )
    found = np.asarray(model.predict_proba(rows), dtype=float)
    if found.ndim != 2 or not np.isfinite(found).all() or (found < 0).any():
        raise InputError(f"predict_proba of {type(model).__name__} gives no probabilities")
    return found


def corners(known: Examples, count: int, key: int) -> Examples:
    """Planted canaries, no two alike: every feature at its least or largest known value, and the
    label by lot. Where there are fewer corners than canaries, the others lie anywhere in the box."""
    if count < 1:
        raise InputError(f"canaries = {count} must be at least 1")
    rng = np.random.default_rng([key, 1 << 32])
    low, high = known.features.min(axis=0), known.features.max(axis=0)
    up = rng.random((2 * count, len(low))) < 0.5
    drawn = rng.permutation(np.unique(np.where(up, high, low), axis=0))[:count]
    inner = rng.uniform(low, high, (count - len(drawn), len(low)))
    labels = rng.choice(np.unique(known.labels), count)
    return Examples(np.vstack([drawn, inner]), labels.astype(np.int64), known.names)
