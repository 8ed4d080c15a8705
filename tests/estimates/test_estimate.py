"""Estimates as people and programs read them."""

import json
from dataclasses import replace

import pytest

from understudy.estimates import Estimate, Estimates, Parts

PARTS = Parts(0.01, 0.0, 0.02, 0.003, 0.0)
TOLD = Estimate("share(b)", 0.43210, 0.38123, 0.48321, 0.95, "table", PARTS, 0.0)
LARGE = Estimate(
    "sum(x)", 12345678.9, 12300000.0, 12400000.0, 0.9, "population", PARTS, 0.4, "careful"
)
NONE = Estimate("gini(x)", None, None, None, 0.95, "table", None, None, "too noisy")


def test_words():
    assert str(TOLD) == "share(b) = 0.432 [0.381, 0.483] (estimated, 95 %, table)"
    assert LARGE.shown == ("12,345,679", "12,300,000", "12,400,000")
    median = replace(TOLD, value=15.0, low=15.0, high=15.0 + 1e-12, unit="")
    assert median.shown == ("15", "15", "15")
    year = replace(TOLD, value=2014.6, low=2014.1, high=2015.1)
    assert year.shown == ("2014.60", "2014.10", "2015.10")
    assert str(LARGE).endswith("(estimated, 90 %, population); careful")
    assert repr(NONE) == "<Estimate gini(x): not determined (too noisy)>"
    assert (TOLD.determined, NONE.determined) == (True, False)


def test_json():
    told = json.loads(json.dumps(TOLD.to_json()))
    assert (told["value"], told["parts"]["noise"], told["determined"]) == (0.4321, 0.01, True)
    assert json.loads(json.dumps(Estimates((TOLD, NONE)).to_json()))[1]["value"] is None


def test_several():
    both = Estimates((TOLD, NONE))
    assert (len(both), both[0], both["gini(x)"], list(both)) == (2, TOLD, NONE, [TOLD, NONE])
    assert str(both).splitlines() == [str(TOLD), str(NONE)]
    with pytest.raises(KeyError, match="there are share"):
        both["mean(x)"]
    shown = both._repr_html_()
    assert "not determined" in shown
    assert "too noisy" in shown


def test_shares_are_told_in_per_cent_and_their_differences_in_points():
    share = replace(TOLD, unit="%")
    assert share.shown == ("43.2 %", "38.1 %", "48.3 %")
    assert replace(TOLD, unit="points").shown[0] == "43.2 points"
    assert (share.to_json()["value"], "unit" in share.to_json()) == (0.43210, False)
