"""`aim`: what is refused, and a release with a filter."""

import pytest

import understudy as us
from understudy import demo, errors
from understudy.errors import InputError
from understudy.game.methods.aim import AIMMethod
from understudy.game.methods.gaussian import GaussianMethod
from understudy.game.methods.mst import MSTMethod
from understudy.privacy import accounting
from understudy.privacy.cost import event_from_json
from understudy.schema import Schema
from understudy.testing import tiny_design


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (AIMMethod(rounds=2), "above the number of columns, 2"),
        (AIMMethod(megabytes=0), "megabytes = 0"),
        (AIMMethod(iterations=0), "iterations = 0"),
        (AIMMethod(limit=2), "3 of them, above its limit of 2"),
        (GaussianMethod(points=0), "points = 0"),
        (GaussianMethod(limit=3), "above its limit of 3"),
    ],
)
def test_what_cannot_be_is_refused(method, message):
    with pytest.raises(InputError, match=message):
        method.check(tiny_design((2, 3), rows=10))


@pytest.mark.parametrize("method", [AIMMethod(), MSTMethod()], ids=lambda m: m.name)
@pytest.mark.parametrize("missing", ["mbi", "jax"])
def test_without_the_libraries_the_extra_is_named(method, missing, monkeypatch):
    real = errors.find_spec
    monkeypatch.setattr(errors, "find_spec", lambda name: None if name == missing else real(name))
    expected = (
        rf"method = {method.name} needs mbi and JAX, which are not installed: "
        rf"pip install '\.\[reference\]'"
    )
    with pytest.raises(InputError, match=expected):
        method.check(tiny_design((2, 3), rows=10))
    GaussianMethod().check(tiny_design((2, 3), rows=10))


def test_a_release_with_a_filter_is_verified_offline(tmp_path):
    """How many rounds there were is in the entries, and their sum stays below the zCDP filter."""
    names = ("sex", "education", "smoker")
    schema = demo.schema()
    narrow = Schema(tuple(column for column in schema.columns if column.name in names))
    table = demo.city_health_survey(500).select([column.name for column in narrow.columns])
    synthesizer = us.AIM(epsilon=2, iterations=50, workload="marginals:2", rows_public=500)
    made = synthesizer.fit(table, narrow).release
    drawn = [e.body["event"] for e in made.entries if e.kind == "charge"]
    adaptive = [event_from_json(e) for e in drawn if e["kind"] == "selection"]
    assert len(adaptive) >= 2
    checked = us.verify(synthesizer.save(tmp_path / "made.release"))
    assert checked is not None
    used = sum(accounting.rho(event_from_json(e)) for e in drawn)
    assert used <= accounting.total_rho(made.plan)
