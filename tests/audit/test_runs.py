"""Shadow runs are kept, and never done twice."""

import pytest

from tests.audit.learners import CLAIM, design
from understudy.audit import runs
from understudy.audit.judge import audit
from understudy.errors import InputError


def test_runs_are_kept_and_never_done_twice(tmp_path):
    """What an interruption leaves is gone on with, and ends in the same audit."""
    whole = audit(design("ByHeart"), CLAIM, runs=12, folder=tmp_path / "whole")

    class Stop(KeyboardInterrupt):
        pass

    def interrupt(done: int, total: int) -> None:
        if done == 5:
            raise Stop

    with pytest.raises(Stop):
        audit(design("ByHeart"), CLAIM, runs=12, folder=tmp_path / "cut", progress=interrupt)
    kept = runs.Runs(tmp_path / "cut", design("ByHeart").describe())
    assert kept.missing(12) == list(range(5, 12))
    before = kept.path(3).read_bytes()
    again = audit(design("ByHeart"), CLAIM, runs=12, folder=tmp_path / "cut")
    assert kept.path(3).read_bytes() == before
    assert again.to_json() == whole.to_json()


@pytest.mark.slow
def test_runs_in_other_processes_are_the_same(tmp_path):
    alone = audit(design("ByHeart"), CLAIM, runs=8, folder=tmp_path / "alone")
    two = audit(design("ByHeart"), CLAIM, runs=8, folder=tmp_path / "two", workers=2)
    assert two.to_json() == alone.to_json()


def test_runs_of_another_audit_are_refused(tmp_path):
    audit(design("Deaf"), CLAIM, runs=8, folder=tmp_path)
    with pytest.raises(InputError, match="runs of another audit"):
        audit(design("ByHeart"), CLAIM, runs=8, folder=tmp_path)
    runs.Runs(tmp_path, design("Deaf").describe()).path(2).write_bytes(b"half")
    with pytest.raises(InputError, match="is damaged; remove it"):
        audit(design("Deaf"), CLAIM, runs=8, folder=tmp_path)
