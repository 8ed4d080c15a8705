"""smartnoise-synth (`pip install smartnoise-synth`): MST, AIM, MWEM and GANs, with the public domain.

Its label transform reads the values of a column from the private rows; here it is fitted beforehand on
rows that list the public domain and nothing else, so no ε goes to preprocessing. AIM gets the very
workload that it is measured on, in place of the one it would draw. DP-CTGAN stops where its accountant
says ε, or after its epochs: with fewer of these, and no `sigma` given, it gets the least noise with
which its accountant says no more than ε at their end.
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
    options = dict(job["options"])
    if job["method"] == "dpctgan" and "epochs" in options and "sigma" not in options:
        options["sigma"] = least_noise(len(codes), job, options)
    synthesizer = snsynth.Synthesizer.create(
        job["method"], epsilon=job["epsilon"], **budget, **options
    )
    if job["method"] == "aim":
        names = [f"col{i}" for i in range(len(columns))]
        workload = [tuple(names[i] for i in clique) for clique in job["cliques"]]
        synthesizer.get_workload = lambda *args, **kwargs: workload
    synthesizer.fit(table, transformer=transformer)
    made = synthesizer.sample(len(codes))
    np.save(job["out"], np.asarray(made).astype(np.int64))
    used: dict[str, Any] = {name: version(name) for name in ("smartnoise-synth", "mbi", "numpy")}
    used["options"] = options
    if job["method"] == "dpctgan":
        used["epsilon"] = spent(len(codes), job, options, options.get("sigma", 5))
    sys.stdout.write("\n" + json.dumps(used) + "\n")


def spent(rows: int, job: dict[str, Any], options: dict[str, Any], sigma: float) -> float:
    """ε after DP-CTGAN's epochs by its own accountant; a batch is two steps, fake rows and real."""
    analysis: Any = import_module("opacus.privacy_analysis")
    batch = options.get("batch_size", 500)
    steps = 2 * options.get("epochs", 300) * max(rows // batch, 1)
    alphas = [1 + x / 10 for x in range(1, 100)] + list(range(12, 64))
    rdp = analysis.compute_rdp(batch / rows, sigma, steps, alphas)
    return float(analysis.get_privacy_spent(alphas, rdp, job["delta"])[0])


def least_noise(rows: int, job: dict[str, Any], options: dict[str, Any]) -> float:
    """The least multiple of 0.05 with which it spends no more than ε."""
    tried = (k / 20 for k in range(10, 200))
    return next(s for s in tried if spent(rows, job, options, s) <= job["epsilon"])


if __name__ == "__main__":
    main(sys.argv[1])
