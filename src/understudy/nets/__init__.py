"""Networks that play the game: generators of records, and what trains them. JAX and optax alone.

Nothing here meets private data, a schema or the gate: networks are trained on released numbers.
This room is imported where it is needed, never at the start; `errors.require_extra` says so before.
"""
