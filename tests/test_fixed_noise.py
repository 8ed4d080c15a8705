"""Noise is fixed by the name of a test, and real where that is asked for."""

import secrets

import numpy as np
import pytest

import understudy as us
from tests import fixed_noise
from understudy import demo
from understudy.privacy.noise import OpenDPNoise, poisson
from understudy.schema import Schema


def drawn():
    noise, zeros = OpenDPNoise(), np.zeros(20, np.int64)
    return (
        noise.laplace(zeros, 50.0).tolist(), noise.gaussian(zeros, 50.0).tolist(),
        noise.to_be_rounded(zeros, 50.0).tolist(), noise.top_k(zeros, 50.0, 20),
        noise.picks(zeros, 50.0, 20),
        noise.below(10**30), secrets.randbits(100), poisson(noise, 500, 0.5).tolist(),
    )  # fmt: skip


@pytest.fixture(scope="module")
def shared():
    return drawn()


def again(name):
    before = fixed_noise.begin(name)
    try:
        return drawn()
    finally:
        fixed_noise.resume(before)


def test_one_name_one_noise(request):
    assert drawn() == again(request.node.nodeid)
    assert all(a != b for a, b in zip(drawn(), again("another"), strict=True))


def test_what_is_shared_is_fixed_by_its_own_name(request, shared):
    assert shared == again("tests/test_fixed_noise.py shared 0")
    assert drawn() == again(request.node.nodeid)


def release():
    schema = demo.schema()
    names = ("sex", "education", "smoker")
    narrow = Schema(tuple(column for column in schema.columns if column.name in names))
    table = demo.city_health_survey(300).select([column.name for column in narrow.columns])
    return us.release(table, narrow, epsilon=1, method="independent")


def test_a_release_is_repeatable(request):
    first = release()
    fixed_noise.begin(request.node.nodeid)
    assert release().rows.equals(first.rows)


@pytest.mark.real_noise
def test_real_noise_is_real_and_its_release_verifies(tmp_path):
    assert all(a != b for a, b in zip(drawn(), drawn(), strict=True))
    first, second = release(), release()
    assert not first.rows.equals(second.rows)  # 300 rows: alike once in more than 10^50 times
    us.verify(first.save(tmp_path / "r")).require()
