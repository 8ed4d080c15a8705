"""One rule as a schema declares it, which form it has, and what it compares a column with."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

from understudy.columns.amounts import Linear
from understudy.columns.base import require_known
from understudy.columns.numeric import exact_number
from understudy.constraints.tokens import JOINTS, KEYWORDS, NAMES, Token, tokens
from understudy.errors import SchemaError, WorkloadError

_KEYS = ("says", "mapping", "cuts", "values", "default", "derived", "read_from_rows")
_ORDERS = ("<", "<=", ">", ">=")
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_VALUES = ("number", "string")


@dataclass(frozen=True)
class Condition:
    """`age >= 0`, or `age < 16 implies status = 'never'`: one or two conditions."""

    parts: tuple[str, ...]


@dataclass(frozen=True)
class Dependency:
    """`zip determines city`."""

    source: str
    target: str


@dataclass(frozen=True)
class Formula:
    """`total = a + b`."""

    target: str
    linear: Linear


@dataclass(frozen=True)
class Comparison:
    """`start <= end`, perhaps only where a condition holds."""

    left: Linear
    op: str
    right: Linear
    given: str | None = None


Form: TypeAlias = Condition | Dependency | Formula | Comparison


@dataclass(frozen=True)
class Rule:
    """One rule: what it `says`, and of `a determines b` how.

    mapping         the value of b for values of a
    cuts, values    or, of an ordered a: `values[i]` from `cuts[i - 1]` up to `cuts[i]`
    default         the value of b where a has none of those; without it b is null there
    derived         b is computed from a instead of modelled; always, where there are cuts
    read_from_rows  a draft read the rule from private rows, and nobody has confirmed it
    """

    says: str
    mapping: tuple[tuple[str, str], ...] = ()
    cuts: tuple[Any, ...] = ()
    values: tuple[str, ...] = ()
    default: str | None = None
    derived: bool = False
    read_from_rows: bool = False

    @classmethod
    def from_toml(cls, table: Mapping[str, Any]) -> Rule:
        """Read a [[rule]] table."""
        require_known(table, _KEYS, "[[rule]]")
        says, mapping = table.get("says"), table.get("mapping", {})
        if not isinstance(says, str) or not says.strip():
            raise SchemaError(
                "[[rule]] has nothing to say; write says = \"age < 16 implies status = 'single'\""
            )
        if not isinstance(mapping, Mapping):
            raise SchemaError(f'rule {says!r}: mapping must be a table, {{"89073" = "Ulm"}}')
        for key in ("derived", "read_from_rows"):
            if not isinstance(table.get(key, False), bool):
                raise SchemaError(f"rule {says!r}: {key} = {table[key]!r} must be true or false")
        for key, example in (("cuts", "[1000, 2500]"), ("values", '["low", "mid", "high"]')):
            if not isinstance(table.get(key, []), (list, tuple)):
                raise SchemaError(f"rule {says!r}: {key} must be a list, {key} = {example}")
        default = table.get("default")
        return cls(
            says.strip(),
            tuple((str(key), _plain(value)) for key, value in mapping.items()),
            tuple(table.get("cuts", ())),
            tuple(map(_plain, table.get("values", ()))),
            None if default is None else _plain(default),
            table.get("derived", False),
            table.get("read_from_rows", False),
        )

    def facts(self) -> dict[str, Any]:
        """What `from_toml` reads."""
        body: dict[str, Any] = {"says": self.says}
        if self.mapping:
            body["mapping"] = dict(self.mapping)
        said = {key: getattr(self, key) for key in _KEYS[2:]}
        return body | {key: value for key, value in said.items() if value not in ((), None, False)}

    @property
    def words(self) -> set[str]:
        """The names that it may speak of."""
        return {token.text for token in self._tokens if token.kind in NAMES}

    @property
    def columns(self) -> list[str]:
        """The names of columns, in the order they are written."""
        return [token.text for token in self._named]

    def renamed(self, name: Callable[[str], str]) -> Rule:
        """The same rule about columns of other names."""
        text, at = "", 0
        for token in self._named:
            text += self.says[at : token.start] + _quoted(name(token.text))
            at = token.end
        return replace(self, says=text + self.says[at:])

    @property
    def _named(self) -> list[Token]:
        return [
            token
            for token in self._tokens
            if token.kind in NAMES and not any(_is(token, joint) for joint in JOINTS)
        ]

    @property
    def target(self) -> str | None:
        """The column that is computed by it, if one is."""
        form = self.form
        if isinstance(form, Formula):
            return form.target
        return form.target if isinstance(form, Dependency) and self.derives else None

    @property
    def derives(self) -> bool:
        """Of a dependency: whether its second column is computed from the first."""
        return self.derived or bool(self.cuts)

    def refuse(self, why: str) -> SchemaError:
        """An error that names the rule."""
        return SchemaError(f"rule {self.says!r}: {why}")

    @cached_property
    def _tokens(self) -> list[Token]:
        try:
            return list(tokens(self.says))[:-1]
        except WorkloadError as error:
            raise self.refuse(str(error)) from None

    @cached_property
    def form(self) -> Form:
        """What kind of rule it is; SchemaError for what is none."""
        words = self._tokens
        if len(words) == 3 and _is(words[1], "determines"):
            return self._dependency(words[0].text, words[2].text)
        for key in ("mapping", "cuts", "values", "default", "derived"):
            if getattr(self, key):
                raise self.refuse(f"{key} belongs to a rule such as 'zip determines city'")
        if len(words) > 2 and words[0].kind in NAMES and words[1].text == "=":
            right = _linear(words[2:])
            if right is not None and right.terms:
                if words[0].text in right.names:
                    raise self.refuse(f"{words[0].text} cannot be computed from itself")
                return Formula(words[0].text, right)
        cuts = [at for at, token in enumerate(words) if _is(token, "implies")]
        if len(cuts) > 1:
            raise self.refuse("it says implies more than once; write two rules")
        start = cuts[0] + 1 if cuts else 0
        parts = (self.says,)
        if cuts:
            at = words[cuts[0]].start
            parts = (self.says[:at], self.says[at + len("implies") :])
        return _comparison(words[start:], parts[0] if cuts else None) or Condition(parts)

    def _dependency(self, source: str, target: str) -> Dependency:
        if source == target:
            raise self.refuse("a column determines itself without a rule")
        if self.cuts or self.values:
            if self.mapping:
                raise self.refuse("mapping and cuts are both given; keep one of them")
            if len(self.values) != len(self.cuts) + 1:
                raise self.refuse(
                    f"{len(self.cuts)} cuts make {len(self.cuts) + 1} intervals, and there are "
                    f"{len(self.values)} values; give one for each, in order"
                )
        elif not self.mapping:
            raise self.refuse(
                f"it needs a public mapping of {source} to {target}, such as "
                'mapping = {"89073" = "Ulm", "53111" = "Bonn"}'
            )
        if self.default is not None and not self.derives:
            raise self.refuse("default is for a column that is computed; add derived = true")
        return Dependency(source, target)


def _quoted(name: str) -> str:
    """A name as it is written in a rule."""
    plain = re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)*", name) and name.lower() not in KEYWORDS
    return name if plain else "`" + name.replace("`", "``") + "`"


def _plain(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _is(token: Token, word: str) -> bool:
    return token.kind == "word" and token.text.lower() == word


def _comparison(words: Sequence[Token], given: str | None) -> Comparison | None:
    """Columns compared with columns; None for anything else."""
    at = [i for i, token in enumerate(words) if token.kind == "op"]
    if len(at) != 1 or words[at[0]].text not in _ORDERS:
        return None
    left, right = _linear(words[: at[0]]), _linear(words[at[0] + 1 :])
    if left is None or right is None or len({*left.names, *right.names}) < 2:
        return None
    return Comparison(left, words[at[0]].text, right, given)


def _linear(words: Sequence[Token]) -> Linear | None:
    """What such words say, `a + b - 3`; None where they are nothing of the kind."""
    total, sign = Linear(()), 1
    wanted = True
    for token in words:
        if token.kind == "mark" and token.text in "+-" and (not wanted or token is words[0]):
            sign, wanted = (-1 if token.text == "-" else 1), True
        elif wanted and token.kind in NAMES:
            total, wanted = total.expanded({}, Linear(((token.text, sign),))), False
        elif wanted and token.kind == "number" and len(token.text) < 40:
            try:
                constant = Linear((), sign * exact_number(token.text))
            except ValueError:
                return None
            total, wanted = total.expanded({}, constant), False
        else:
            return None
    return None if wanted else total


# The public values that rules compare a column with: where its cells have to end


def compared(text: str, name: str) -> Iterator[tuple[str, Any]]:
    """Every comparison of the column with a value in a condition: operator and value.

    `in` and `between` are taken apart. Values are numbers or texts; nothing is looked up, so a value
    that the column cannot have is the business of whoever reads the condition.
    """
    words = [(token.kind, token.text) for token in tokens(text)]
    for at, (kind, word) in enumerate(words):
        if kind not in NAMES or word != name:
            continue
        rest = words[at + 1 :]
        if rest[:1] == [("keyword", "not")]:
            rest = rest[1:]
        if rest and rest[0][0] == "op":
            yield from ((rest[0][1], value) for value in _values(rest[1:], 1))
        elif rest[:1] == [("keyword", "in")]:
            yield from (("=", value) for value in _values(rest[2:], len(rest)))
        elif rest[:1] == [("keyword", "between")]:
            yield from zip((">=", "<="), _values(rest[1:], 2), strict=False)
        if at > 1 and words[at - 1][0] == "op" and words[at - 2][0] in _VALUES:
            minus = words[at - 3 : at - 2] == [("mark", "-")]
            op = words[at - 1][1]
            yield _FLIPPED.get(op, op), _value(*words[at - 2], minus)


def _values(words: list[tuple[str, str]], most: int) -> Iterator[Any]:
    """The values that the words begin with, commas and the `and` of `between` left out."""
    minus = False
    for kind, word in words:
        if kind in _VALUES and most:
            yield _value(kind, word, minus)
            most -= 1
        elif (kind, word) not in (("mark", "-"), ("mark", "+"), ("mark", ","), ("keyword", "and")):
            return
        minus = (kind, word) == ("mark", "-")


def _value(kind: str, word: str, minus: bool) -> Any:
    if kind == "string":
        return word
    number = int(word) if word.isdigit() else float(word)
    return -number if minus else number
