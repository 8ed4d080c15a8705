"""The models without privacy."""

import subprocess
import sys

import pytest
from bench import twins
from bench.twins import NonPrivateLasso, NonPrivateLogisticRegression
from learners import classes_table, logistic, numbers_table


@pytest.mark.usefixtures("fixed_noise")
def test_the_twins_are_a_bit_better_and_keep_no_account():
    X, y = classes_table()
    twin = NonPrivateLogisticRegression(bounds=(-1, 1), classes=(0, 1)).fit(X, y)
    assert twin.score(X, y) >= logistic().fit(X, y).score(X, y) - 0.01
    X, y = numbers_table()
    assert NonPrivateLasso(bounds=(0, 10), target_bounds=(-10, 40)).fit(X, y).score(X, y) > 0.95
    for name in ("NonPrivateLasso", "NonPrivateLogisticRegression"):
        parameters = {"NonPrivateLasso": NonPrivateLasso()}.get(
            name, NonPrivateLogisticRegression()
        ).get_params()
        assert not {"epsilon", "ledger", "dataset", "delta"} & set(parameters)
    assert not hasattr(twin, "entries_")
    assert not hasattr(twin, "spent_")


def test_twins_know_no_ledger():
    code = (
        "import sys\nfrom bench.twins import NonPrivateLasso\n"
        "print('understudy.privacy.ledger' in sys.modules, 'opendp' in sys.modules)"
    )
    assert "ledger" not in vars(twins)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split()[1] == "False"
