"""What the columns of two tables are called in rules, and whom of a family a rule is about."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from understudy.columns.base import near
from understudy.constraints.rule import Comparison, Condition, Rule
from understudy.errors import SchemaError

TABLES = ("parent", "child")


@dataclass(frozen=True)
class Names:
    """What columns are called in rules: by their name where one table has it, or as those of views.

    Of views they are `households.region`, `persons.age`, and `sibling.age` or, with an order,
    `previous.age`; also `persons.count` and, with an order, `persons.position`.
    """

    parent: str
    parents: Sequence[str]
    child: str
    children: Sequence[str]
    sibling: str
    ordered: bool

    def _found(self, word: str) -> tuple[str, str] | None:
        """(which member, which of its columns); None where there is no such column."""
        table, dot, name = word.partition(".")
        figures = ["count"] + ["position"] * (self.ordered)
        if dot and table == self.parent and name in self.parents:
            return "parent", name
        if dot and table in (self.child, self.sibling):
            if name in self.children:
                return ("child" if table == self.child else "sibling"), name
            if table == self.child and name in figures:
                return ("parent" if name == "count" else "child"), name
        tables = zip(TABLES, (self.parents, self.children), strict=True)
        held = [m for m, names in tables if word in names]
        if len(held) > 1:
            raise SchemaError(
                f"column {word!r} is in both tables; write {self.parent}.{word} or "
                f"{self.child}.{word}"
            )
        return (held[0], word) if held else None

    def _require(self, word: str) -> tuple[str, str]:
        found = self._found(word)
        if found is None:
            table = word.partition(".")[0]
            known = [*self.parents, *self.children]
            known += [f"{self.sibling}.{name}" for name in self.children]
            hint = near(word, known)
            if table in ("previous", "sibling") and table != self.sibling:
                order = "have an order" if self.ordered else "have no order"
                hint = f"; {self.child} {order}, so write {self.sibling}.{word.partition('.')[2]}"
            raise SchemaError(f"unknown column {word!r}{hint}")
        return found

    def _placed(self, rule: Rule) -> list[tuple[str, str]]:
        try:
            return [self._require(word) for word in rule.columns]
        except SchemaError as error:
            raise rule.refuse(str(error)) from None

    def members(self, rule: Rule) -> set[str]:
        """Whom it is about: parent, child, sibling. What it says of sizes is about several."""
        placed = self._placed(rule)
        found = {member for member, _ in placed}
        figures = {("parent", "count"), ("child", "position")}.intersection(placed)
        return found | set(TABLES) if figures or found == {"sibling"} else found

    def siblings(self, rules: Iterable[Rule]) -> list[str]:
        """Columns of siblings that rules speak of."""
        named = {
            name for rule in rules for member, name in self._placed(rule) if member == "sibling"
        }
        return [name for name in self.children if name in named]

    def own(self, rule: Rule) -> Rule:
        """A rule about one table as that table's schema has it."""
        return rule.renamed(lambda word: self._require(word)[1])

    def view(self, word: str) -> str:
        """The column of views."""
        member, name = self._require(word)
        if name in ("count", "position"):
            return f"{self.child}.{name}"
        table = {"parent": self.parent, "child": self.child}
        return f"{table.get(member, self.sibling)}.{name}"

    def mirrored(self, word: str) -> str:
        """The column of views with child and sibling exchanged."""
        member, name = self._require(word)
        if member == "child":
            return f"{self.sibling}.{name}"
        return f"{self.child}.{name}" if member == "sibling" else self.view(word)

    def mirrors(self, rule: Rule) -> bool:
        """Whether a rule about two siblings says something of them the other way round, too.

        A comparison under a condition does as well, but can be held one way only (`Rules`).
        """
        placed = self._placed(rule)
        named = {name for member, name in placed if member == "sibling"}
        form = rule.form
        return (
            bool(named)
            and {name for member, name in placed if member == "child"} <= named
            and not (isinstance(form, Comparison) and form.given is not None)
        )

    def require_kept(self, rule: Rule, computed: set[str]) -> None:
        """Refuse what only rows of one table can keep."""
        if not isinstance(rule.form, Condition | Comparison):
            raise rule.refuse(
                "between members of a family a rule is a condition or compares two columns; columns "
                "are computed within one table"
            )
        for _, name in self._placed(rule):
            if name in computed:
                raise rule.refuse(
                    f"{name!r} is computed from other columns of its table; between members of a "
                    "family name those"
                )
