"""Which query player may play against which data player: nothing that is charged may be lost."""

from __future__ import annotations

from types import UnionType
from typing import Any

from understudy.errors import InputError
from understudy.players.base import DataPlayer, QueryPlayer

__all__ = ["require_pair"]


def require_pair(query: QueryPlayer, data: DataPlayer[Any]) -> None:
    """Refuse players that do not fit, before anything is spent. A fact about public settings.

    They fit if the data player learns from every kind of answer that the query player may give and gets
    those that it requires, shows what the query player looks at, and lasts as long as the game.

    Raises:
        InputError: They do not fit; names what would be lost or is missing.
    """
    pair = f"{type(query).__name__} cannot play against {type(data).__name__}"
    lost = sorted(query.gives - data.accepts)
    if lost:
        raise InputError(
            f"{pair}: it gives {', '.join(lost)}, which would be paid for and not used; take a data "
            f"player that accepts them, this one accepts {', '.join(sorted(data.accepts))}"
        )
    missing = sorted(data.requires - query.gives)
    if missing:
        raise InputError(
            f"{pair}: it does not give {', '.join(missing)}, without which this data player learns "
            f"nothing; take another query player"
        )
    for needed in query.needs:
        if not issubclass(data.shows, needed):
            raise InputError(
                f"{pair}: it looks at {_name(needed)}, and is shown {data.shows.__name__}; take a "
                f"data player that shows it"
            )
    most = data.most_rounds()
    if most is not None and query.rounds > most:
        raise InputError(
            f"{pair}: it plays {query.rounds} rounds, of which the data player learns from {most}; "
            f"give both the same number"
        )


def _name(needed: type | UnionType) -> str:
    return needed.__name__ if isinstance(needed, type) else str(needed)
