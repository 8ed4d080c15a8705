"""Whether a release will fit into a bundle, asked of its plan before anything is spent.

The limits of the format (`form`, docs/bundle.md) hold for genuine releases too: one that is too large
to be saved, or that both verifiers would refuse, must not cost a budget first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from understudy.errors import BundleError, InputError
from understudy.privacy.cost import Plan
from understudy.releases import form
from understudy.releases.bundle import MANIFEST, manifest_bytes
from understudy.releases.measurements import MOST_COUNTS
from understudy.schema import Schema

__all__ = ["require_room"]

_HASH = "0" * 64
_OFTEN = 3
"""How many tables of one column may be kept with their counts."""
_LINK = {"seq": 10**9, "digest": _HASH, "prev": _HASH, "hash": _HASH}
_STAMP = {"reservation": _HASH, "writer": "w" * 64, "time": "t" * 32}


def require_room(
    schema: Schema, reserved: Mapping[str, Any], plan: Plan, beta: float, key: int | None
) -> None:
    """Raise `InputError` where a bundle could not hold the release or would be refused.

    `reserved` is what the ledger will say of the reservation, `plan` every charge.
    """
    charges = plan.to_json()
    try:
        form.require_choices(reserved, charges, beta, key)
    except BundleError as error:
        raise InputError(f"a release cannot be kept as asked for: {error}") from None
    text = len(schema.dumps().encode("utf-8"))
    if text > form.LARGEST["schema.toml"]:
        raise InputError(
            f"the schema has {text:,} bytes, and a release's at most "
            f"{form.LARGEST['schema.toml']:,}: declare fewer values"
        )
    draws = sum(charge["times"] for charge in charges)
    values, size = _manifest(schema, reserved, charges)
    if values > form.MOST_VALUES or size > form.LARGEST[MANIFEST]:
        raise InputError(
            f"the release would have {draws:,} draws for {len(reserved['facts']['workload']):,} "
            f"marginals, more than a bundle records ({size:,} of {form.LARGEST[MANIFEST]:,} bytes, "
            f"{values:,} of {form.MOST_VALUES:,} values): use fewer rounds or steps, or a smaller "
            f"workload"
        )


def _manifest(
    schema: Schema, reserved: Mapping[str, Any], charges: Sequence[Mapping[str, Any]]
) -> tuple[int, int]:
    """About how many values and bytes the manifest will have; rather too many."""
    facts = reserved["facts"]
    kept = {"promise": reserved["budget"], "method": facts["method"]}
    values, size = _measure([_entry("reserve", reserved)], workload=facts["workload"], **kept)
    for charge in charges:
        times, body = charge["times"], {name: charge[name] for name in ("purpose", "event")}
        more = _measure([_entry("charge", body)])
        values, size = values + more[0] * times, size + more[1] * times
    counts = _OFTEN * sum(cells for cells in schema.shape if cells <= MOST_COUNTS)
    forecast = 2 * len(facts["workload"])
    return values + counts + forecast, size + 16 * counts + 32 * forecast


def _entry(kind: str, body: Mapping[str, Any]) -> dict[str, Any]:
    return {"kind": kind, "body": {**body, **_STAMP}, **_LINK}


def _measure(entries: Sequence[Any], **rest: Any) -> tuple[int, int]:
    data = manifest_bytes({"ledger": {"entries": list(entries)}, **rest})
    return form.values(data), len(data)
