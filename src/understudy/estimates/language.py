"""What may be asked, in words: `mean(income) by sex`, `logit(insured ~ age + education)`.

    share(CONDITION)   count(CONDITION)   mean(x)   sum(x)   median(x)   quantile(x, .9)   gini(x)
    correlation(x, y)  odds(CONDITION, CONDITION)   difference(mean(x) by g)
    ols(y ~ a + b)     logit(y ~ a + C(b))          independence(a, b)

    … where CONDITION      only those rows
    … by COLUMN            one estimate for each of its values

Conditions are those of `understudy answer`. Names of columns that are no words are quoted:
"marital-status".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NoReturn

from understudy.columns.base import Modelled, near
from understudy.columns.category import Boolean, Category
from understudy.constraints.tokens import NAMES, Token, fail, named, tokens
from understudy.errors import WorkloadError
from understudy.estimates.frame import Condition, condition
from understudy.estimates.inner import inner
from understudy.estimates.means import Correlation, Difference, Mean, Odds, Total
from understudy.estimates.quantiles import Custom, Gini, Quantile
from understudy.estimates.regression import Regression, Term
from understudy.estimates.statistic import Domain, Statistic
from understudy.schema import Schema

_FORMS = {
    **dict.fromkeys(("share", "count"), "CONDITION"),
    **dict.fromkeys(("mean", "sum", "median", "gini"), "COLUMN"),
}
"""What stands in the brackets of those that people write without any."""
_REGRESSION = "ols(y ~ a + b), or logit(y ~ a + b) of an outcome of two values"
_ELSEWHERE = {
    **dict.fromkeys(("regression", "lm", "glm", "linear", "logistic"), _REGRESSION),
    **dict.fromkeys(("test", "chisq", "chi2"), "independence(a, b), or difference(mean(y) by a)"),
    **dict.fromkeys(("average", "avg"), "mean(y)"),
}
"""What other tools call a statistic, and how it is asked for here."""
MOST_GROUPS = 100
MOST_COLUMNS = 8
"""Columns of one statistic: what it rests on grows with them, and so does the work."""


@dataclass(frozen=True)
class Independent:
    """A test of independence that was asked for: two columns."""

    pair: tuple[int, int]


@dataclass(frozen=True, eq=False)
class Own:
    """A function of one's own; see `statistic`."""

    function: Callable[..., float]
    columns: tuple[str, ...]
    name: str


def statistic(
    function: Callable[..., float], columns: Sequence[str], name: str = "statistic"
) -> Own:
    """Any function of weighted records, for `Release.estimate`.

    `function(frame, weights)` gets a mapping from the names of `columns` to arrays, one entry for each
    distinct cell of the model, and weights that sum to one; it returns a number. Numbers are the means
    of their cells (NaN where a row has none), other columns are labels. It is called once for each
    cell, a few times over, because its influence function is differentiated numerically.
    """
    return Own(function, tuple(columns), name)


def logit(formula: str, where: str | None = None) -> str:
    """A logistic regression, such as "insured ~ age + education", for `Release.estimate`."""
    return _model("logit", formula, where)


def ols(formula: str, where: str | None = None) -> str:
    """A linear regression, such as "income ~ age + C(sex)", for `Release.estimate`."""
    return _model("ols", formula, where)


def _model(kind: str, formula: str, where: str | None) -> str:
    return f"{kind}({formula})" + ("" if where is None else f" where {where}")


def bound(own: Own, schema: Schema) -> Custom:
    """A function of one's own for a schema."""
    if not own.columns:
        raise WorkloadError("columns names none; list the columns that the function uses")
    at = tuple(schema.position(name) for name in own.columns)
    columns = [schema.modelled[i] for i in at]
    numeric = tuple(i for i, column in zip(at, columns, strict=True) if _is_number(column))
    labels = tuple(tuple(column.labels()) for column in columns)
    return Custom((own.name,), own.function, at, own.columns, numeric, labels)


def parsed(text: str, schema: Schema) -> tuple[Statistic, ...] | Independent:
    """What a text asks for: one statistic for each group, or a test.

    Raises:
        WorkloadError: With a caret under the place, and the remedy.
    """
    asked = _Asked(text, schema).parse()
    if not isinstance(asked, Independent):
        for each in asked:
            if len(each.columns) > MOST_COLUMNS:
                raise WorkloadError(
                    f"{text!r} is about {len(each.columns)} columns; at most {MOST_COLUMNS} go into "
                    "one statistic"
                )
    return asked


def _is_number(column: Modelled) -> bool:
    try:
        inner(column)
    except WorkloadError:
        return False
    return True


class _Asked:
    """One text, taken apart."""

    def __init__(self, text: str, schema: Schema) -> None:
        self.text, self.schema = text, schema

    def parse(self) -> tuple[Statistic, ...] | Independent:
        head = re.match(r"\s*([A-Za-z]\w*)\s*\(", self.text)
        if head is None:
            word = re.match(r"\s*([A-Za-z]+)\b", self.text)
            if word is not None and word.group(1).lower() in _FORMS:
                name = word.group(1).lower()
                rest = self.text[word.end() :].strip()
                such = f"{name}({_FORMS[name]}) {rest}".rstrip()
                self._fail(word.end(1), f"{name} of what? write it in brackets: {such}")
            such = "such as mean(income) or share(age >= 65)"
            if "~" in self.text:
                such = f"such as {_REGRESSION}"
            self._fail(0, f"expected a statistic, {such}")
        name = head.group(1).lower()
        known = {
            "share": self._share,
            "count": self._count,
            "mean": self._mean,
            "sum": self._sum,
            "median": self._median,
            "quantile": self._quantile,
            "gini": self._gini,
            "correlation": self._correlation,
            "odds": self._odds,
            "difference": self._difference,
            "ols": self._ols,
            "logit": self._logit,
            "independence": self._independence,
        }
        if name not in known:
            hint = near(name, known) or f"; known are {', '.join(known)}"
            if name in _ELSEWHERE:
                hint = f"; write {_ELSEWHERE[name]}"
            self._fail(head.start(1), f"{name!r} is no statistic{hint}")
        begin, end = head.end(), self._closing(head.end())
        return known[name](begin, end, *self._rest(end + 1))

    # The parts of a text

    def _fail(self, at: int, problem: str) -> NoReturn:
        fail(self.text, at, problem)

    def _closing(self, begin: int) -> int:
        """Where the bracket that was opened before `begin` is closed; quotes are skipped."""
        depth, quote = 1, ""
        for at in range(begin, len(self.text)):
            sign = self.text[at]
            if quote:
                quote = "" if sign == quote else quote
            elif sign in "'\"`":
                quote = sign
            elif sign in "()":
                depth += 1 if sign == "(" else -1
                if depth == 0:
                    return at
        self._fail(len(self.text), "the bracket is never closed: expected ')'")

    def _tokens(self, begin: int, end: int) -> list[Token]:
        """Those of a part, where they stand in the whole text."""
        try:
            found = list(tokens(self.text[begin:end]))
        except WorkloadError:
            list(tokens(" " * begin + self.text[begin:end]))  # points into the whole text
            raise
        return [replace(token, start=token.start + begin) for token in found]

    def _rest(self, begin: int) -> tuple[Condition | None, int | None]:
        """(where, by) after the closing bracket, in any order."""
        where: Condition | None = None
        by: int | None = None
        found = self._tokens(begin, len(self.text))
        starts = [t for t in found if t.kind == "word" and t.text.lower() in ("where", "by")]
        if found[0].kind != "end" and (not starts or starts[0] is not found[0]):
            self._fail(found[0].start, "expected 'where CONDITION', 'by COLUMN' or the end")
        ends = [*(t.start for t in starts[1:]), len(self.text)][: len(starts)]
        for token, end in zip(starts, ends, strict=True):
            if token.text.lower() == "by":
                if by is not None:
                    self._fail(token.start, "'by' stands here twice; group by one column")
                by = self._column(token.start + 2, end)
            elif where is not None:
                self._fail(token.start, "'where' stands here twice; join conditions by 'and'")
            else:
                where = self._condition(token.start + 5, end)
        return where, by

    def _condition(self, begin: int, end: int) -> Condition:
        shown = self.text[begin:end]
        if not shown.strip():
            self._fail(begin, "expected a condition, such as age >= 65")
        return condition(shown.strip(), self.schema)

    def _column(self, begin: int, end: int) -> int:
        found = self._tokens(begin, end)
        if found[0].kind not in NAMES or len(found) != 2:
            asked = self.text[begin:end].strip()
            known = [column.name for column in self.schema.modelled]
            hint = f", in double quotes: {named(asked)}" if asked in known else ""
            self._fail(found[0].start, f"expected the name of a column{hint}")
        return self._position(found[0])

    def _position(self, token: Token) -> int:
        try:
            return self.schema.position(token.text)
        except WorkloadError as error:
            self._fail(token.start, str(error))

    def _number(self, begin: int, end: int) -> int:
        column = self._column(begin, end)
        self._require_number(column, begin)
        return column

    def _require_number(self, column: int, at: int) -> None:
        try:
            inner(self.schema.modelled[column])
        except WorkloadError as error:
            self._fail(at, str(error))

    def _arguments(self, begin: int, end: int, many: int, form: str) -> list[tuple[int, int]]:
        """The places between commas that are not inside brackets or quotes."""
        commas, depth = [begin - 1], 0
        for token in self._tokens(begin, end):
            depth += {"(": 1, ")": -1}.get(token.text, 0) if token.kind == "mark" else 0
            if token.kind == "mark" and token.text == "," and depth == 0:
                commas.append(token.start)
        commas.append(end)
        if len(commas) != many + 1:
            self._fail(begin, f"expected {form}")
        return [(left + 1, right) for left, right in pairwise(commas)]

    def _groups(self, where: Condition | None, by: int | None) -> Iterator[tuple[Domain, str]]:
        """Each domain that is asked for, and words for it."""
        if by is None:
            yield Domain(where), "" if where is None else f" where {where.text}"
            return
        column = self.schema.modelled[by]
        labels = column.labels()[: column.size - column.nullable]
        if len(labels) > MOST_GROUPS:
            raise WorkloadError(
                f"column {column.name!r} has {len(labels)} values; estimates go by at most "
                f"{MOST_GROUPS} groups: use 'where {column.name} = …'"
            )
        for code, label in enumerate(labels):
            also = "" if where is None else f", {where.text}"
            yield Domain(where, (by, code)), f" where {column.name} = {label}{also}"

    def _said(self, name: str, begin: int, end: int) -> str:
        return f"{name}({self.text[begin:end].strip()})"

    # Statistics

    def _share(self, begin: int, end: int, where: Any, by: Any) -> tuple[Mean, ...]:
        of, said = self._condition(begin, end), self._said("share", begin, end)
        return tuple(Mean((said + w,), domain, of) for domain, w in self._groups(where, by))

    def _count(self, begin: int, end: int, where: Any, by: Any) -> tuple[Mean, ...]:
        of, said = self._condition(begin, end), self._said("count", begin, end)
        return tuple(Total((said + w,), domain, of) for domain, w in self._groups(where, by))

    def _mean(self, begin: int, end: int, where: Any, by: Any) -> tuple[Mean, ...]:
        of, said = self._number(begin, end), self._said("mean", begin, end)
        return tuple(Mean((said + w,), domain, of) for domain, w in self._groups(where, by))

    def _sum(self, begin: int, end: int, where: Any, by: Any) -> tuple[Mean, ...]:
        of, said = self._number(begin, end), self._said("sum", begin, end)
        return tuple(Total((said + w,), domain, of) for domain, w in self._groups(where, by))

    def _median(self, begin: int, end: int, where: Any, by: Any) -> tuple[Quantile, ...]:
        of, said = self._number(begin, end), self._said("median", begin, end)
        groups = self._groups(where, by)
        return tuple(Quantile((said + w,), domain, of, 0.5) for domain, w in groups)

    def _quantile(self, begin: int, end: int, where: Any, by: Any) -> tuple[Quantile, ...]:
        form = "a column and a share between 0 and 1, such as quantile(income, 0.9)"
        first, second = self._arguments(begin, end, 2, form)
        shown = self.text[slice(*second)].strip()
        if not re.fullmatch(r"0?\.\d+", shown) or not 0 < float(shown) < 1:
            self._fail(second[0], f"expected {form}")
        of, at, said = self._number(*first), float(shown), self._said("quantile", begin, end)
        return tuple(Quantile((said + w,), d, of, at) for d, w in self._groups(where, by))

    def _gini(self, begin: int, end: int, where: Any, by: Any) -> tuple[Gini, ...]:
        of, said = self._number(begin, end), self._said("gini", begin, end)
        return tuple(Gini((said + w,), domain, of) for domain, w in self._groups(where, by))

    def _correlation(self, begin: int, end: int, where: Any, by: Any) -> tuple[Correlation, ...]:
        places = self._arguments(begin, end, 2, "two columns: correlation(x, y)")
        i, j = (self._number(*place) for place in places)
        if i == j:
            self._fail(begin, "expected two different columns")
        said = self._said("correlation", begin, end)
        return tuple(Correlation((said + w,), d, (i, j)) for d, w in self._groups(where, by))

    def _odds(self, begin: int, end: int, where: Any, by: Any) -> tuple[Odds, ...]:
        places = self._arguments(begin, end, 2, "two conditions: odds(smoker, sex = 'F')")
        first, second = (self._condition(*place) for place in places)
        said = self._said("odds", begin, end)
        return tuple(Odds((said + w,), d, (first, second)) for d, w in self._groups(where, by))

    def _difference(self, begin: int, end: int, where: Any, by: Any) -> tuple[Difference, ...]:
        if where is not None or by is not None:
            self._fail(end + 1, "'where' and 'by' go inside: difference(mean(x) by g)")
        within = _Asked(self.text[:end].ljust(len(self.text)), self.schema)
        within.text = " " * begin + self.text[begin:end]
        groups = within.parse()
        simple = not isinstance(groups, Independent) and all(type(each) is Mean for each in groups)
        if not simple or len(groups) < 2:  # type: ignore[arg-type]
            self._fail(begin, "expected the groups of a mean or share: difference(mean(x) by g)")
        first, *others = [each for each in groups if isinstance(each, Mean)]  # type: ignore[union-attr]
        return tuple(
            Difference((f"{other.names[0]}, less {_group(first)}",), other, first)
            for other in others
        )

    def _independence(self, begin: int, end: int, where: Any, by: Any) -> Independent:
        if where is not None or by is not None:
            self._fail(end + 1, "independence is tested on all rows: expected the end")
        places = self._arguments(begin, end, 2, "two columns: independence(a, b)")
        i, j = (self._column(*place) for place in places)
        if i == j:
            self._fail(begin, "expected two different columns")
        return Independent((i, j))

    # Regressions

    def _ols(self, begin: int, end: int, where: Any, by: Any) -> tuple[Regression, ...]:
        return self._regression(begin, end, where, by, logistic=False)

    def _logit(self, begin: int, end: int, where: Any, by: Any) -> tuple[Regression, ...]:
        return self._regression(begin, end, where, by, logistic=True)

    def _regression(
        self, begin: int, end: int, where: Any, by: Any, *, logistic: bool
    ) -> tuple[Regression, ...]:
        if by is not None:
            self._fail(end + 1, "a regression has no groups; use 'where', or a term for the column")
        cut = self.text.find("~", begin, end)
        if cut < 0:
            self._fail(begin, "expected a formula, such as income ~ age + C(sex)")
        outcome = self._outcome(begin, cut, logistic)
        terms, missing, names = self._terms(cut + 1, end)
        held = set(outcome.clique) if isinstance(outcome, Condition) else {outcome}
        if both := held & {term.column for term in terms}:
            name = self.schema.modelled[both.pop()].name
            self._fail(begin, f"column {name!r} stands on both sides of '~'")
        if isinstance(outcome, Condition) and len(held) == 1:
            column = self.schema.modelled[next(iter(held))]
            if column.nullable:
                missing = (*missing, (next(iter(held)), column.size - 1))
        names = ("(intercept)", *names)
        return (Regression(names, Domain(where), outcome, terms, missing, logistic),)

    def _outcome(self, begin: int, end: int, logistic: bool) -> int | Condition:
        found = self._tokens(begin, end)
        if len(found) != 2 or found[0].kind not in NAMES:
            return self._condition(begin, end)
        at = self._position(found[0])
        column = self.schema.modelled[at]
        if isinstance(column, Boolean):
            return condition(named(column.name), self.schema)
        if not logistic:
            self._require_number(at, found[0].start)
            return at
        if isinstance(column, Category) and column.size - column.nullable == 2:
            value = str(column.values[-1]).replace("'", "''")
            shown = f"'{value}'" if isinstance(column.values[-1], str) else value
            return condition(f"{named(column.name)} = {shown}", self.schema)
        self._fail(
            found[0].start,
            f"the outcome {column.name!r} has more than two values; write a condition, such as "
            f"logit({column.name} = … ~ …)",
        )

    def _terms(
        self, begin: int, end: int
    ) -> tuple[tuple[Term, ...], tuple[tuple[int, int], ...], tuple[str, ...]]:
        """(terms, codes that stand for null, names)."""
        terms: list[Term] = []
        missing: list[tuple[int, int]] = []
        names: list[str] = []
        found = iter(self._tokens(begin, end))
        token = next(found)
        while True:
            if token.kind not in NAMES:
                self._fail(token.start, "expected a column, or C(column)")
            base: Token | None = None
            dummies, word = False, token
            token = next(found)
            if word.text == "C" and token.text == "(" and token.kind == "mark":
                dummies, word = True, next(found)
                if word.kind not in NAMES:
                    self._fail(word.start, "expected a column: C(column) or C(column, 'base')")
                token = next(found)
                if token.text == ",":
                    base, token = next(found), next(found)
                if token.text != ")":
                    self._fail(token.start, "expected ')': C(column) or C(column, 'base')")
                token = next(found)
            at = self._position(word)
            if at in {term.column for term in terms}:
                self._fail(word.start, f"column {word.text!r} stands here twice")
            column = self.schema.modelled[at]
            if dummies or isinstance(column, Boolean) or not _is_number(column):
                levels = column.labels()[: column.size - column.nullable]
                first = self._base(levels, base)
                terms += [Term(at, code) for code in range(len(levels)) if code != first]
                names += [_term(column.name, label) for label in levels if label != levels[first]]
                missing += [(at, column.size - 1)] * column.nullable
            else:
                terms.append(Term(at))
                names.append(column.name)
            if token.kind == "end":
                break
            if token.text != "+":
                self._fail(token.start, "expected '+' or the end of the formula")
            token = next(found)
        if len(terms) > MOST_GROUPS:
            self._fail(begin, f"{len(terms)} coefficients; at most {MOST_GROUPS} are estimated")
        return tuple(terms), tuple(missing), tuple(names)

    def _base(self, levels: list[str], base: Token | None) -> int:
        if base is None:
            return 0
        if base.text not in levels:
            self._fail(base.start, f"{base.text!r} is no value{near(base.text, levels)}")
        return levels.index(base.text)


def _term(name: str, label: str) -> str:
    """One value of a column, as coefficients are named: sex[F], age[10-20)."""
    return f"{name}{label}" if label.startswith(("[", "(")) else f"{name}[{label}]"


def _group(mean: Mean) -> str:
    """The words for the group of a mean."""
    return mean.names[0].partition(" where ")[2]
