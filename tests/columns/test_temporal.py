import numpy as np
import pyarrow as pa

from understudy.columns import Date, Datetime

RNG = np.random.default_rng


def test_a_date_is_what_the_wall_clock_shows():
    column = Date("x", "2014-01-01", "2014-01-03")
    late = pa.array([1388712600], pa.timestamp("s", "America/New_York"))  # 2nd, 20:30 local
    assert column.encode(late).tolist() == [1]
    assert column.encode(late.cast(pa.timestamp("s", "Not/AZone"))).tolist() == [2]


def test_the_ends_of_time_do_not_wrap():
    column = Date("x", "2014-01-01", "2014-01-03")
    ends = pa.array([-(2**63) + 1, 2**63 - 1])
    for zone in (None, "Asia/Tokyo", "America/New_York"):
        assert column.encode(ends.cast(pa.timestamp("ns", zone))).tolist() == [0, 2]


def test_an_instant_is_an_instant():
    column = Datetime(
        "x", "2014-01-01", "2014-01-03", 2, resolution="hour", dtype="timestamp[s, tz=UTC]"
    )
    assert column.encode(pa.array(["2014-01-01T23:30:00-05:00"])).tolist() == [1]
    naive = Datetime("x", "2014-01-01", "2014-01-03", 2, resolution="hour")
    assert naive.encode(pa.array(["2014-01-01T23:30:00-05:00"])).tolist() == [0]


def test_dates_by_day_and_times_by_resolution():
    column = Datetime("x", "2014-01-01", "2014-12-31", 4, resolution="hour")
    drawn = column.decode(np.repeat(np.arange(4), 100), RNG(0)).to_pylist()
    assert all(moment.minute == moment.second == 0 for moment in drawn)


def test_dates_take_texts_and_dates():
    column = Date("d", "2014-01-01", "2014-01-04", 2)
    inner, outer = column.compare(">=", "2014-01-02")
    assert inner.tolist() == [False, True]
    assert outer.tolist() == [True, True]
    times = Datetime("d", "2014-01-01", "2014-01-04", 3)
    assert times.compare("<", "2014-01-02T00:00:00.5")[1].tolist() == [True, True, False]
