"""The ledger: what was ever charged against a dataset, durable before any noise is drawn.

A file (SQLite) or a server (PostgreSQL, for a team) holds an append-only, hash-chained list of entries
per dataset, see `stores`; every fact is computed from entries whose chain was checked, see `books`:

* `open`     a dataset with its total budget, relation, rule of composition and privacy unit
* `reserve`  a release: its (ε, δ) and its whole plan, checked against what is left
* `charge`   one draw of the plan, committed before the draw
* `redraw`   a charge whose draw was not made (the rows could not be counted) is drawn under, once
* `refine`   a zCDP filter of the plan is filled by a plan that follows from earlier draws
* `settle`   the release is over; later charges are refused
* `publish`  the digest of the bundle that came of it
* `move`, `arrive`  the dataset goes on in another ledger, and came from one

Guarantees. (1) Charges of one dataset never pass its total budget, with any number of processes and
crashes at any moment: a reservation is made inside one block of writing, and a charge only inside a
live reservation. (2) When `charge` returns, the entry is on disk. (3) Under one charge at most one draw
is made again, whoever asks: a `redraw` is written under the lock before it.

Composition over releases, declared when the dataset is opened:
* `zcdp`: Σρ, converted tightly at the dataset's δ. An open release counts its plan, a settled one
  the charges it made. Valid adaptively (Feldman-Zrnic 2021). The default where δ > 0. The first
  release may also take the whole account by its own (ε, δ), which is often tighter than its ρ; then
  nothing else is ever drawn.
* `basic`: Σε ≤ ε and Σδ ≤ δ. A release counts in full from its reservation on; settled without a
  single charge it counts nothing. Valid for releases chosen adaptively (Rogers et al. 2016).

Times stand in `open`, `reserve`, `move` and `arrive` alone: how long a draw took depends on the rows.
"""

from understudy.privacy.ledger.books import (
    Account,
    Books,
    Charged,
    Composition,
    Dataset,
    Made,
    planned,
    refined,
)
from understudy.privacy.ledger.ledger import Ledger, own_ledger
from understudy.privacy.ledger.reservation import Reservation

__all__ = [
    "Account",
    "Books",
    "Charged",
    "Composition",
    "Dataset",
    "Ledger",
    "Made",
    "Reservation",
    "own_ledger",
    "planned",
    "refined",
]
