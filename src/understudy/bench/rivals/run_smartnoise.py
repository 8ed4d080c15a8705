"""smartnoise-synth (`pip install smartnoise-synth`): MST, AIM, MWEM and GANs, with the public domain.

Its label transform reads the values of a column from the private rows; here it is fitted beforehand on
rows that list the public domain and nothing else, so no ε goes to preprocessing. AIM gets the very
workload that it is measured on, in place of the one it would draw.
"""

import json
import sys
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np


def main(path: str) -> None:
    """Fit, sample, write."""
    job = json.loads(Path(path).read_text(encoding="utf-8"))
    pandas: Any = import_module("pandas")
    snsynth: Any = import_module("snsynth")
    transform: Any = import_module("snsynth.transform")
    columns = [f"c{i}" for i in range(len(job["shape"]))]
    codes = np.load(job["codes"])
    table = pandas.DataFrame(codes.astype(np.int64), columns=columns)
    labels = [transform.LabelTransformer(nullable=False) for _ in columns]
    if job["method"] in ("dpctgan", "patectgan"):  # networks take indicators
        labels = [transform.ChainTransformer([each, transform.OneHotEncoder()]) for each in labels]
    transformer = transform.TableTransformer(labels)
    every = np.arange(max(job["shape"]))[:, None] % np.array(job["shape"])
    transformer.fit(pandas.DataFrame(every, columns=columns))
    budget = {} if job["method"] == "mwem" else {"delta": job["delta"]}
    synthesizer = snsynth.Synthesizer.create(
        job["method"], epsilon=job["epsilon"], **budget, **job["options"]
    )
    if job["method"] == "aim":
        names = [f"col{i}" for i in range(len(columns))]
        workload = [tuple(names[i] for i in clique) for clique in job["cliques"]]
        synthesizer.get_workload = lambda *args, **kwargs: workload
    synthesizer.fit(table, transformer=transformer)
    made = synthesizer.sample(len(codes))
    np.save(job["out"], np.asarray(made).astype(np.int64))
    used = {name: version(name) for name in ("smartnoise-synth", "mbi", "numpy")}
    sys.stdout.write("\n" + json.dumps(used) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
