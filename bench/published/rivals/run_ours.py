"""One release of ours in an interpreter of its own: `python run_ours.py JOB`.

The same job as the scripts beside it get, so that CPU seconds and memory are
taken alike: imports, reading and the certificate are in them.
"""

from __future__ import annotations

import json
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["main"]


def main(path: str) -> None:
    """Release, write the codes, say how it went."""
    import pyarrow as pa

    from understudy._version import __version__
    from understudy.releases.run import release
    from understudy.schema import Category, Schema

    job: dict[str, Any] = json.loads(Path(path).read_text(encoding="utf-8"))
    codes = np.load(job["codes"])
    names = job["names"]
    schema = Schema(
        tuple(Category(n, tuple(range(size))) for n, size in zip(names, job["shape"], strict=True))
    )
    table = pa.table({name: codes[:, at] for at, name in enumerate(names)})
    made = release(
        table,
        schema,
        epsilon=str(job["epsilon"]),
        delta=Fraction(1, len(codes) ** 2),
        workload=[tuple(names[i] for i in clique) for clique in job["cliques"]],
        method=job["method"],
        parameters=job["options"],
        rows_public=len(codes),
        rows=len(codes),
    )
    np.save(job["out"], np.column_stack(schema.encode(made.rows)))
    said = {
        "understudy": __version__,
        "settings": made.method,
        "certificate": made.certificate.bound,
    }
    sys.stdout.write("\n" + json.dumps(said) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
