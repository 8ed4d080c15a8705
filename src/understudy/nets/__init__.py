"""Networks that play the game: generators of records, and what trains them. JAX and optax alone.

Nothing here meets private data, a schema or the gate: networks are trained on released numbers.
This room is imported where it is needed, never at the start; `errors.require_extra` says so before.
"""

import os

# JAX would take three quarters of a GPU's memory beforehand: over a second on a large one, which is as
# long as a thousand steps, for networks that need a few gigabytes. Whoever has set it is not overruled.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
