"""`understudy methods`."""

import understudy as us
from tests.cli.cli_cases import run


def test_methods_and_version():
    listed = run("methods")
    assert listed.code == 0
    for name in us.METHODS:
        assert name in listed.out
    assert run("--version").out == f"understudy {us.__version__}\n"
