"""What every question owes, one request each: charge first, say nothing exact, and be kept as drawn."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
import traceback
from fractions import Fraction

import numpy as np
import pytest

from tests.privacy.privacy_fakes import LeakyNoise, LoggedCharges, LoggedNoise
from tests.privacy.questions.test_gradient import Given
from tests.privacy.questions.test_values import Held
from understudy.errors import CountingError, PrivacyError
from understudy.privacy import exact as exact_module
from understudy.privacy import objective, questions
from understudy.privacy.buckets import SCORE_SENSITIVITY, UNIT
from understudy.privacy.cost import (
    Discovery,
    Gaussian,
    Laplace,
    SampledGaussian,
    SampledGroups,
    Selection,
    Zcdp,
)
from understudy.privacy.exact import Examples
from understudy.privacy.features import Box
from understudy.privacy.gate import Gate
from understudy.privacy.journal import Journal
from understudy.privacy.losses import Logistic
from understudy.privacy.products import ProductQueries
from understudy.privacy.questions import descent
from understudy.privacy.questions.best_models import Models
from understudy.privacy.questions.gradient import Groups
from understudy.privacy.questions.moments import RandomFeatures, event_for
from understudy.privacy.relation import Relation
from understudy.privacy.sensitive import Sensitive
from understudy.testing import SeededNoise
from understudy.testing.distributions import fingerprint
from understudy.testing.stand_ins import TinyCounts

SHAPE, CLIQUES = (2, 2), ((0,), (0, 1))
ROWS = ((0, 0), (0, 1), (1, 1), (1, 1))
RELATION = Relation.ADD_REMOVE
SECRET = 48151623

CELLS = (questions.Cell(0, (1,), 1), questions.Cell(1, (0, 1), -1))
RECORDS = (np.array([0, 1, 1]), np.array([1, 1, 0]))
REFERENCES = (np.full(2, 0.5), np.full((2, 2), 0.25))
SYNTHETIC = (np.array([1, 1]), np.array([[1, 0], [0, 1]]))
CLASSES = (ProductQueries((0, 1), (np.eye(2, dtype=np.int64),) * 2),)
FEATURES = RandomFeatures(SHAPE, CLIQUES, "fourier", units=3, key=1)
LOOKS = objective.MarginalFeatures(SHAPE, CLIQUES)
NETWORK = Given([np.ones((2, 2))], [np.full((2, 1), 0.3)])
WEIGHTS = descent.Weights(np.zeros((1, 2), np.int64), 1.0)
PICK = Selection(2.0 * UNIT, SCORE_SENSITIVITY, k=2)
TOSS = Selection(questions.rejection_scale(2.0, 0.5), SCORE_SENSITIVITY, k=2)
HELD = Held([("p", "a"), ("q", "a"), ("q", "b")], None)

REQUESTS = {
    "BestModels": (
        Selection(9.0, Models.SENSITIVITY),
        questions.BestModels(Models((len, lambda rows: 0.0)), 4),
    ),
    "CellCounts": (Gaussian(2.0, changes=2), questions.CellCounts(CLIQUES, CELLS)),
    "BernoulliRejection": (
        TOSS,
        questions.BernoulliRejection(CLIQUES, CELLS, RECORDS, 4, 2.0, 0.5),
    ),
    "Critic": (
        objective.event_for(LOOKS, RELATION, Fraction(1)),
        questions.Critic(CLIQUES, RECORDS, 4.0),
    ),
    "Degrees": (Gaussian(2.0, changes=2), questions.Degrees((0, 1), np.zeros(2, np.int64))),
    "LinearGradient": (SampledGaussian(9.0, 5, 2), descent.LinearGradient(Logistic(), WEIGHTS)),
    "Marginals": (Gaussian(2.0, changes=2), questions.Marginals(CLIQUES)),
    "Moments": (event_for(FEATURES, RELATION, Fraction(1)), questions.Moments(FEATURES)),
    "NetworkGradient": (
        SampledGroups((2.0,), 3),
        questions.NetworkGradient(NETWORK, Groups((0.5,))),
    ),
    "Payoff": (Laplace(9.0, 2 * UNIT), questions.Payoff(CLIQUES, CELLS, (0.5, 0.0))),
    "PickedCells": (PICK, questions.PickedCells(CLIQUES, RECORDS, 4)),
    "PickedQueries": (PICK, questions.PickedQueries(CLASSES, (np.zeros((2, 2)),))),
    "RowCount": (Gaussian(2.0), questions.RowCount()),
    "SteepestVertex": (Selection(9.0, descent.UNIT), descent.SteepestVertex(Logistic(), WEIGHTS)),
    "TargetLevels": (Gaussian(9.0), descent.TargetLevels(Logistic())),
    "ThresholdedErrors": (
        Gaussian(2.0, changes=2),
        questions.ThresholdedErrors(CLIQUES, REFERENCES, (0.1, 0.1)),
    ),
    "TotalVariations": (
        Gaussian(2.0, step=questions.variation_step(RELATION, rows_public=False), changes=2),
        questions.TotalVariations(CLIQUES, SYNTHETIC, 2),
    ),
    "Triangles": (Gaussian(2.0), questions.Triangles((0, 1))),
    "Values": (Discovery(1.0, 2), questions.Values(HELD, "c", 3)),
    "WorstCell": (Selection(9.0, 16), questions.WorstCell(CLIQUES, REFERENCES, True)),
    "WorstError": (Laplace(9.0, 4), questions.WorstError(CLIQUES, SYNTHETIC, 2)),
    "WorstErrorOfRows": (Laplace(9.0, 4), questions.WorstErrorOfRows(CLIQUES, RECORDS)),
    "WorstMarginals": (
        Selection(9.0, 16, k=2),
        questions.WorstMarginals(CLIQUES, REFERENCES, (0.0, 0.0)),
    ),
    "WorstQueryError": (Laplace(9.0, 4), questions.WorstQueryError(CLASSES, (SYNTHETIC[1],), 2)),
}
LEARNED = {"LinearGradient", "SteepestVertex", "TargetLevels"}
every_question = pytest.mark.parametrize("name", REQUESTS)


def learned():
    box = Box.of((-1, 1), 2, intercept=False)
    return Examples.seal(np.array([[0.5, -1.0], [1.0, 0.2]]), np.array([1.0, 0.0]), box)


def gate_of(name, noise, log=None, event=None, rows=None, record=None):
    charges = LoggedCharges(log, slot=event or REQUESTS[name][0], relation=RELATION)
    rows = rows or (learned() if name in LEARNED else TinyCounts(SHAPE, ROWS))
    return Gate(rows, charges, RELATION, noise, None, record)


def test_none_is_missing():
    assert {name for name, found in _defined() if callable(getattr(found, "need", None))} == set(
        REQUESTS
    )


def _defined():
    """The public dataclasses of every module of questions."""
    for each in pkgutil.iter_modules(questions.__path__, f"{questions.__name__}."):
        for name, found in vars(importlib.import_module(each.name)).items():
            own = getattr(found, "__module__", None) == each.name
            if own and dataclasses.is_dataclass(found) and not name.startswith("_"):
                yield name, found


@every_question
def test_questions_are_frozen(name):
    _, question = REQUESTS[name]
    field = dataclasses.fields(question)[0].name if dataclasses.fields(question) else "more"
    with pytest.raises((dataclasses.FrozenInstanceError, AttributeError, TypeError)):
        setattr(question, field, None)


@every_question
def test_the_charge_comes_first_then_what_is_exact_then_the_noise(name, monkeypatch):
    log, opened = [], exact_module.reveal

    def reveal(sealed):
        log.append(("reveal",))
        return opened(sealed)

    monkeypatch.setattr(exact_module, "reveal", reveal)
    gate_of(name, LoggedNoise(log), log).ask("slot", REQUESTS[name][1])
    kinds = [entry[0] for entry in log]
    assert kinds[0] == "charge"
    assert kinds.count("charge") == 1
    assert "reveal" in kinds
    drawn = kinds.index(next(k for k in kinds if k not in ("charge", "reveal")))
    assert "reveal" in kinds[:drawn]


@every_question
def test_another_kind_of_event_is_refused_before_the_charge(name):
    planned, question = REQUESTS[name]
    for event in (Gaussian(0.1), Laplace(0.1), Selection(0.1), Discovery(0.1, 2), Zcdp(1.0)):
        if type(event) is type(planned):
            continue
        log = []
        with pytest.raises(PrivacyError, match="does not cover"):
            gate_of(name, LoggedNoise(log), log, event).ask("slot", question)
        assert log == []


class Starved(TinyCounts):
    """Counts that do not fit the memory, as NumPy says it: with their exact size."""

    def _fail(self, *_):
        raise MemoryError(f"Unable to allocate {SECRET} bytes")

    rows = marginals = sparse = records = holders = _fail


class TooLarge:
    """An array of a learner that cannot be read."""

    def __len__(self):
        raise MemoryError(f"Unable to allocate {SECRET} bytes")

    def __getitem__(self, _):
        raise MemoryError(f"Unable to allocate {SECRET} bytes")

    __gt__ = __getitem__
    shape = property(__len__)


def starved(name):
    if name in LEARNED:
        return Examples(Sensitive(TooLarge()), Sensitive(TooLarge()), 2)
    return Starved(SHAPE, ROWS)


def refused(gate, question):
    with pytest.raises(PrivacyError, match="could not be drawn") as caught:
        gate.ask("slot", question)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    return "".join(traceback.format_exception(caught.value)) + repr(caught.value.args)


@every_question
def test_rows_that_do_not_fit_the_memory_are_told_without_their_size(name):
    question, log = REQUESTS[name][1], []
    if name == "Values":
        question = dataclasses.replace(question, held=Starved(SHAPE, ROWS))
    text = refused(gate_of(name, LoggedNoise(log), log, rows=starved(name)), question)
    assert "(MemoryError)" in text
    assert str(SECRET) not in text
    assert log == [("charge", "slot")]


@every_question
@pytest.mark.parametrize("kind", [RuntimeError, MemoryError])
def test_a_sampler_that_fails_tells_nothing(name, kind):
    text = refused(gate_of(name, LeakyNoise(kind)), REQUESTS[name][1])
    assert f"({kind.__name__})" in text
    assert "LEAK" not in text


def test_a_context_is_the_callers_own():
    own = KeyError("own")
    try:
        raise own
    except KeyError:
        with pytest.raises(PrivacyError) as caught:
            gate_of("Marginals", LeakyNoise(MemoryError)).ask("slot", REQUESTS["Marginals"][1])
    assert caught.value.__context__ is own
    assert "LEAK" not in "".join(traceback.format_exception(caught.value))


class Charged:
    """A reservation as a journal sees it on the way back."""

    id = "r"

    def charged(self):
        return ["slot"]


class Spent(LoggedCharges):
    def charge(self, purpose, event=None):
        raise AssertionError("charged again")


@every_question
def test_what_was_drawn_is_kept_and_decoded_again_without_a_charge(name, tmp_path):
    event, question = REQUESTS[name]
    first = Journal(tmp_path / "kept")
    first.begin("r", 1, {})
    answer = gate_of(name, SeededNoise(5), record=first).ask("slot", question)
    first.let_go()
    again = Journal(tmp_path / "kept")
    again.resume(Charged())
    resumed = Gate(
        starved(name), Spent(slot=event, relation=RELATION), RELATION, LeakyNoise(), None, again
    )
    assert fingerprint(resumed.ask("slot", question)) == fingerprint(answer)


@pytest.mark.parametrize("name", [name for name in REQUESTS if name not in LEARNED])
def test_rows_that_cannot_be_counted_are_noted_and_nothing_is_kept(name, tmp_path):
    class Away(TinyCounts):
        def _fail(self, *_):
            raise CountingError("the database went away")

        rows = marginals = sparse = records = holders = _fail

    question = REQUESTS[name][1]
    if name == "Values":
        question = dataclasses.replace(question, held=Away(SHAPE, ROWS))
    journal = Journal(tmp_path / "kept")
    journal.begin("r", 1, {})
    log = []
    with pytest.raises(CountingError):
        gate_of(name, LoggedNoise(log), log, rows=Away(SHAPE, ROWS), record=journal).ask(
            "slot", question
        )
    assert log == [("charge", "slot")]
    lines = (tmp_path / "kept" / "journal.jsonl").read_text().splitlines()
    assert len(lines) == 2
    assert "uncounted" in lines[1]
