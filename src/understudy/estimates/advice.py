"""What would narrow an interval that is wide, and which purpose of a new release asks for it."""

from __future__ import annotations

from collections.abc import Sequence

from understudy.constraints.predicate import Predicate
from understudy.estimates.frame import Condition
from understudy.estimates.language import Independent, parsed
from understudy.estimates.means import Difference
from understudy.estimates.regression import Regression
from understudy.estimates.solve import Known, apart
from understudy.estimates.statistic import Statistic, Within
from understudy.queries.purpose import read
from understudy.schema import Schema


def advice(known: Known, asked: str, purposes: Sequence[str]) -> tuple[str, str | None]:
    """Why most of an interval allows for what no table tells, and a purpose that would help, if any.

    `purposes` are those of the release: what it was made for already is not advised again.
    """
    found = parsed(asked, known.schema)
    missing: list[tuple[str, str]] = []
    if not isinstance(found, Independent):
        missing = apart(known, found[0].columns)
    if isinstance(found, Independent) or not missing:
        return (
            "Most of an interval here allows for what the noisy tables leave open. Larger groups or "
            "fewer columns would narrow it, and so would a new release with a larger epsilon, which "
            "costs budget of its own"
        ), None
    told = (
        f"No noisy table of this release holds {' or '.join(f'{a} and {b}' for a, b in missing)} "
        "together, so that an interval here allows for a strong dependence between them"
    )
    schema = known.schema
    wanted = [f.clique for text in purposes for f in read(text).families(schema)]
    pairs = [{*clique} for clique in wanted if len(clique) == 2]
    if all({*map(schema.position, two)} in pairs for two in missing):
        return f"{told}. It was made for this already: only a larger epsilon would help", None
    return told, _purpose(found[0], schema)


def remarks(asked: str, schema: Schema) -> tuple[str, ...]:
    """What conditions do not hold, though a reader may take it that they do."""
    found = parsed(asked, schema)
    conditions = () if isinstance(found, Independent) else found[0].conditions
    parts = (Predicate.parse(each.text, schema).remarks for each in conditions)
    return tuple(remark for part in parts for remark in part)


def _purpose(statistic: Statistic, schema: Schema) -> str:
    """The purpose whose tables hold every two columns of a statistic."""
    group = _group(statistic)
    if group is not None and len(statistic.columns) == 2:
        return f"subgroups:{schema.modelled[group].name}"
    first = statistic.columns[0] if group is None else group
    if isinstance(statistic, Regression):
        outcome = statistic.outcome
        first = outcome.clique[0] if isinstance(outcome, Condition) else outcome
    names = [_named(schema.modelled[i].name) for i in statistic.columns if i != first]
    return f"regression:{_named(schema.modelled[first].name)} ~ {' + '.join(names)}"


def _group(statistic: Statistic) -> int | None:
    """The column whose values are the groups that are asked about."""
    if isinstance(statistic, Difference):
        return _group(statistic.first)
    group = statistic.domain.group if isinstance(statistic, Within) else None
    return None if group is None else group[0]


def _named(name: str) -> str:
    return f"`{name}`" if set("+~") & set(name) else name
