"""Networks that play the game: generators of records, and what trains them. JAX and optax alone.

Nothing here meets private data, a schema or the gate: networks are trained on released numbers.
This room is imported where it is needed, never at the start; `require_nets` says so when it is missing.
"""

from importlib.util import find_spec

from understudy.errors import InputError

__all__ = ["require_nets"]


def require_nets(method: str) -> None:
    """Refuse, before anything is planned or spent, where the libraries are missing.

    Raises:
        InputError: JAX or optax is not installed.
    """
    if any(find_spec(library) is None for library in ("jax", "optax")):
        raise InputError(
            f"method = {method} needs JAX and optax, which are not installed: "
            f"pip install 'understudy[nets]'"
        )
