"""Every exception understudy raises on purpose.

    UnderstudyError
    ├── InputError                 wrong use or input; nothing was spent (exit code 2)
    │   ├── SchemaError            the schema contradicts itself, the table's header or its use
    │   │   └── UnconfirmedError   a drafted schema still holds facts read from private rows
    │   ├── WorkloadError          a workload or predicate that the schema cannot resolve
    │   ├── SourceError            a table that cannot be read
    │   └── BundleError            a folder that is not a release, or of another version
    ├── PrivacyError               a promise of privacy/ would be broken; nothing was drawn
    │   ├── SensitiveError         something tried to look at an exact private value
    │   ├── RelationError          two neighbouring relations were mixed
    │   └── LedgerError            the ledger refuses
    │       ├── BudgetExhausted    the charge does not fit the budget
    │       └── ChainBroken        the hash chain does not hold
    ├── VerificationError          a release fails a check
    └── WorkError                  the work failed for another reason, for instance a full disk
        └── CountingError          an engine failed while it counted: charged, and nothing drawn

Messages name the column or option, the value it had and the remedy. They never hold a value that
was computed from private rows.
"""

import re
from importlib.util import find_spec

_ENDLESS = re.compile(r"\S{301,}")
_EXTRAS = {
    "figures": ("matplotlib", "matplotlib, which is"),
    "learn": ("sklearn", "scikit-learn, which is"),
    "nets": ("jax optax", "JAX and optax, which are"),
    "reference": ("mbi jax", "mbi and JAX, which are"),
}


class UnderstudyError(Exception):
    """The root of the tree; catch this to catch everything understudy raises on purpose."""

    def __init__(self, *parts: object) -> None:
        super().__init__(*(readable(part) if isinstance(part, str) else part for part in parts))


def readable(text: str) -> str:
    """A message that somebody can read, whatever it echoes: no endless word, a page at most."""
    return cut(_ENDLESS.sub(lambda word: cut(word[0], 120), text))


def cut(text: str, most: int = 4_000) -> str:
    """A text that echoes a long input, without its middle: problem and remedy stand at its ends."""
    if len(text) <= most:
        return text
    half = (most - 40) // 2
    return f"{text[:half]} … {len(text) - 2 * half:,} characters … {text[-half:]}"


class InputError(UnderstudyError, ValueError):
    """Wrong use or input, found before any budget was spent."""


class SchemaError(InputError):
    """The schema contradicts itself, the table's header or its use."""


class UnconfirmedError(SchemaError):
    """A drafted schema still holds facts that were read from private rows."""


class WorkloadError(InputError):
    """A workload or predicate that cannot be resolved against the schema."""


class SourceError(InputError):
    """A table that cannot be read."""


class BundleError(InputError):
    """A folder that is not a release, or was written by another version."""


class PrivacyError(UnderstudyError):
    """A promise of `privacy/` would be broken; nothing was drawn."""


class SensitiveError(PrivacyError, TypeError):
    """Something tried to print, compare, copy or save an exact private value."""


class RelationError(PrivacyError):
    """Two neighbouring relations were mixed in one account."""


class LedgerError(PrivacyError):
    """The ledger refuses; nothing was drawn."""


class BudgetExhausted(LedgerError):
    """The charge does not fit into what is left of the budget."""


class ChainBroken(LedgerError):
    """An entry of the ledger was changed, dropped or reordered."""


class VerificationError(UnderstudyError):
    """A release fails a check."""


class WorkError(UnderstudyError, RuntimeError):
    """The work failed for a reason that is neither input nor privacy."""


class CountingError(WorkError):
    """An engine failed while it counted: what it counted for is charged, and nothing was drawn."""


def require_extra(what: str, extra: str) -> None:
    """Refuse, before anything is planned or spent, where libraries of an extra are missing.

    Raises:
        InputError: One is not installed; the message names the extra.
    """
    libraries, named = _EXTRAS[extra]
    if any(find_spec(library) is None for library in libraries.split()):
        raise InputError(
            f"{what} needs {named} not installed: pip install '.[{extra}]', in the folder of the source"
        )
