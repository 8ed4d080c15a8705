"""dpmm (`pip install dpmm`): MST and AIM on codes, with the public domain.

Its binning of raw values, which spends ε of its own on top, is off: codes need none, so the whole ε is
the mechanism's. AIM gets the very workload that it is measured on, by the mechanism's own argument.
"""

import json
import sys
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np


def main(path: str) -> None:
    """Fit, generate, write."""
    job = json.loads(Path(path).read_text(encoding="utf-8"))
    pandas: Any = import_module("pandas")
    pipelines: Any = import_module("dpmm.pipelines." + job["method"])
    kind = {"mst": "MSTPipeline", "aim": "AIMPipeline"}[job["method"]]
    columns = [f"c{i}" for i in range(len(job["shape"]))]
    codes = np.load(job["codes"])
    table = pandas.DataFrame(codes.astype(np.int64), columns=columns)
    domain = dict(zip(columns, job["shape"], strict=True))
    pipeline = getattr(pipelines, kind)(
        epsilon=job["epsilon"], delta=job["delta"], disable_processing=True, n_jobs=1,
        **job["options"],
    )  # fmt: skip
    if job["method"] == "mst":
        pipeline.fit(table, domain=domain)
    else:
        # What `fit` of the pipeline does with processing off, and the workload.
        workload = [(tuple(columns[i] for i in clique), 1.0) for clique in job["cliques"]]
        pipeline.set_random_state(None)
        pipeline.gen.set_domain(domain=domain)
        pipeline.gen.check_fit(table)
        pipeline.gen.generator.fit(table, W=workload)
    made = pipeline.generate(n_records=len(codes))[columns]
    np.save(job["out"], made.to_numpy().astype(np.int64))
    used = {"dpmm": version("dpmm"), "numpy": np.__version__}
    sys.stdout.write("\n" + json.dumps(used) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
