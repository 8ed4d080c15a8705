"""What may be asked, and what is said where it may not."""

import numpy as np
import pytest

from tests.estimates import tiny
from understudy.errors import InputError, WorkloadError
from understudy.estimates import Estimates, Independence, estimate, logit, ols, statistic
from understudy.estimates import language as languages
from understudy.estimates.language import Independent, parsed
from understudy.estimates.means import Difference, Mean, Total
from understudy.estimates.quantiles import Quantile
from understudy.estimates.regression import Regression, Term
from understudy.schema import Boolean, Category, Date, Integer, Schema

SCHEMA = Schema(
    (
        Category("a", ("p", "q", "r")),
        Boolean("b", nullable=True),
        Integer("x", 0, 9, bins=5, nullable=True),
        Category("two words", ("u", "v"), nullable=True),
        Integer("y", 0, 5),
        Date("day", "2020-01-01", "2020-12-31", bins=4),
    )
)
A, B, X, TWO, Y = range(5)


def one(text):
    (found,) = parsed(text, SCHEMA)
    return found


def test_statistics():
    found = one("mean(x) where a = 'p' and y > 2")
    assert isinstance(found, Mean)
    assert (found.of, found.names) == (X, ("mean(x) where a = 'p' and y > 2",))
    assert found.columns == (A, X, Y)
    assert isinstance(one("SUM( x )"), Total)
    assert one("share(\"two words\" = 'u')").columns == (TWO,)
    assert (one("median(y)").at, one("quantile(y, .25)").at) == (0.5, 0.25)
    assert isinstance(one("quantile(y, 0.9)"), Quantile)
    assert one("correlation(x, y)").pair == (X, Y)
    assert one("odds(b, x in (1, 2) or a = 'p')").columns == (A, B, X)
    assert one("mean(b)").numbers == (B,)
    assert parsed("independence(y, `two words`)", SCHEMA) == Independent((Y, TWO))


def test_groups_in_any_order():
    first = parsed("mean(y) by a where b", SCHEMA)
    second = parsed("mean(y) where b by a", SCHEMA)
    assert [each.names for each in first] == [each.names for each in second]
    assert [each.domain.group for each in first] == [(A, 0), (A, 1), (A, 2)]
    assert first[1].names == ("mean(y) where a = q, b",)
    assert len(parsed('mean(y) by "two words"', SCHEMA)) == 2  # not by null
    differences = parsed("difference(share(b) by a)", SCHEMA)
    assert [type(each) for each in differences] == [Difference, Difference]
    assert differences[0].names == ("share(b) where a = q, less a = p",)


def test_formulas():
    found = one("ols(y ~ x + C(a, 'q') + b)")
    assert isinstance(found, Regression)
    assert found.names == ("(intercept)", "x", "a[p]", "a[r]", "b[true]")
    assert found.terms == (Term(X), Term(A, 0), Term(A, 2), Term(B, 1))
    assert found.missing == ((B, 2),)
    assert (found.outcome, found.logistic) == (Y, False)
    both = one(logit("b ~ y", where="a = 'p'"))
    assert (both.logistic, both.columns, both.missing) == (True, (A, B, Y), ((B, 2),))
    assert one('logit("two words" ~ C(y))').outcome.text == "\"two words\" = 'v'"
    assert len(one("logit(a = 'p' ~ C(y))").terms) == 5
    assert ols("y ~ x") == "ols(y ~ x)"


REFUSED = {
    "": "expected a statistic",
    "count by g": r"count of what\? write it in brackets: count\(CONDITION\) by g",
    "mean where x > 1": r"write it in brackets: mean\(COLUMN\) where x > 1",
    "men(y)": "no statistic.*did you mean 'mean'",
    "wish(y)": "no statistic; known are share",
    "regression(y ~ x)": r"no statistic; write ols\(y ~ a \+ b\), or logit",
    "y ~ x": r"expected a statistic, such as ols\(y ~ a \+ b\)",
    "test(a, b)": r"write independence\(a, b\), or difference",
    "average(y)": r"write mean\(y\)",
    "mean(y": "never closed",
    "mean(z)": "unknown column 'z'",
    "mean(a)": r"'a' \(category\) holds no numbers.*share\(a = ",
    "mean(day)": "'day' .date. holds no numbers",
    "mean(y, x)": "expected the name of a column",
    "mean(two words)": 'expected the name of a column, in double quotes: "two words"',
    "mean(y) over a": "expected 'where CONDITION', 'by COLUMN' or the end",
    "mean(y) by": "expected the name of a column",
    "mean(y) by a by b": "twice",
    "mean(y) where b where b": "join conditions by 'and'",
    "mean(y) where": "expected a condition",
    "share()": "expected a condition",
    "share(yy > 2)": "unknown column 'yy'",
    "quantile(y, 9)": "a share between 0 and 1",
    "quantile(y)": "a share between 0 and 1",
    "correlation(y, y)": "two different columns",
    "correlation(y)": "two columns",
    "odds(b)": "two conditions",
    "difference(mean(y))": "the groups of a mean",
    "difference(median(y) by a)": "the groups of a mean",
    "difference(mean(y) by a) where b": "go inside",
    "independence(a, a)": "two different columns",
    "independence(a, b) by y": "expected the end",
    "ols(y)": "expected a formula",
    "ols(y ~ x) by a": "no groups",
    "ols(y ~ x +)": "expected a column",
    "ols(y ~ x b)": r"expected '\+'",
    "ols(y ~ x + x)": "twice",
    "ols(y ~ x + y)": "both sides",
    "ols(y ~ C(a, 'Q'))": "'Q' is no value",
    "ols(y ~ C(a 'q'))": r"expected '\)'",
    "ols(y ~ 3)": "expected a column",
    "ols(a ~ x)": "holds no numbers",
    "logit(a ~ x)": r"more than two values.*logit\(a = ",
    "mean(y) ; drop": "not expected",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_refused_says_why_and_where(text):
    with pytest.raises(WorkloadError, match=REFUSED[text]) as refused:
        parsed(text, SCHEMA)
    assert "\n  " in str(refused.value)
    assert str(refused.value).rstrip().endswith("^")


def test_limits(monkeypatch):
    monkeypatch.setattr(languages, "MOST_GROUPS", 2)
    with pytest.raises(WorkloadError, match=r"'a' has 3 values.*where a"):
        parsed("mean(y) by a", SCHEMA)
    with pytest.raises(WorkloadError, match="5 coefficients"):
        parsed("ols(x ~ C(y))", SCHEMA)
    monkeypatch.setattr(languages, "MOST_COLUMNS", 1)
    with pytest.raises(WorkloadError, match="about 2 columns"):
        parsed("correlation(x, y)", SCHEMA)


def test_answers_have_their_kinds():
    rng = np.random.default_rng(0)
    known = tiny.known(tiny.truth(), tiny.counted(2000 * tiny.truth(), 20.0, rng))
    assert isinstance(estimate(known, "mean(x) by a"), Estimates)
    assert isinstance(estimate(known, "independence(a, b)"), Independence)
    own = estimate(known, statistic(lambda frame, weights: weights @ frame["x"], ["x"], "mine"))
    mean = estimate(known, "mean(x)")
    assert (own.name, own.value) == ("mine", pytest.approx(mean.value, abs=1e-3))
    assert own.high - own.low == pytest.approx(mean.high - mean.low, rel=0.02)
    with pytest.raises(InputError, match="target = 'rows' must be one of population, table"):
        estimate(known, "mean(x)", "rows")
    with pytest.raises(InputError, match="level = 95"):
        estimate(known, "mean(x)", level=95)
