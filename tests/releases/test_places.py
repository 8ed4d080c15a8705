"""Releases of places: certified and sampled rows on land, whatever the method."""

import numpy as np
import pyarrow as pa
import pytest

import understudy as us
from understudy.errors import SchemaError
from understudy.queries import counts
from understudy.schema import Geography, Integer, Number, Polygons, Schema

BAY = Polygons((((10.0, 50.0), (12.0, 50.0), (12.0, 52.0), (11.0, 50.8), (10.0, 52.0)),))
SCHEMA = Schema(
    (Number("lat", 49.8, 52.2, 6), Number("long", 9.8, 12.2, 6), Integer("rooms", 1, 3)),
    geography=(Geography("lat", "long", BAY),),
)


def homes(rows: int) -> pa.Table:
    """Some of them in the water: what private rows say is never looked at."""
    rng = np.random.default_rng(3)
    where = rng.normal([51.0, 11.0], 0.5, (rows, 2))
    return pa.table({"lat": where[:, 0], "long": where[:, 1], "rooms": rng.integers(1, 4, rows)})


@pytest.mark.parametrize(
    "method",
    [
        "auto",
        "independent",
        pytest.param("fem", marks=pytest.mark.slow),
        pytest.param("dpgan", marks=pytest.mark.slow),
    ],
)
def test_every_method_puts_rows_on_land(tmp_path, method):
    table = homes(800)
    made = us.release(table, SCHEMA, epsilon=2, method=method, key=1)
    for rows in (made.rows, made.sample(500, like="arrow"), made.sample(0, like="arrow")):
        assert SCHEMA.illegal(rows) == []
    made.save(tmp_path / "homes")
    us.verify(tmp_path / "homes").require()


def test_the_certificate_speaks_of_the_rows_that_were_moved():
    """Fails with probability e^−20 (2·10⁻⁹); rows that were not moved are off by 48 of 800 here."""
    table = homes(800)
    made = us.release(table, SCHEMA, epsilon=100, method="independent", key=1)
    cliques = made.workload.cliques
    real = counts(SCHEMA.encode(table), SCHEMA.shape, cliques)
    fake = counts(SCHEMA.encode(made.rows), SCHEMA.shape, cliques)
    worst = max(
        float(np.abs(r / table.num_rows - f / made.rows.num_rows).max())
        for r, f in zip(real, fake, strict=True)
    )
    noise = made.plan["certificate"].event
    far = abs(made.certificate.worst - noise.l1 * table.num_rows * worst)
    assert far <= 1 + 20 * noise.scale < 20 * noise.l1


def test_rows_that_were_moved_off_land_are_refused(tmp_path):
    made = us.release(homes(300), SCHEMA, epsilon=2, key=1)
    rows = made.rows.to_pydict()
    rows["lat"][0], rows["long"][0] = 51.9, 11.0
    object.__setattr__(made, "rows", pa.table(rows, schema=made.rows.schema))
    made.save(tmp_path / "homes")
    found = {check.name: check for check in us.verify(tmp_path / "homes").checks}
    assert not found["rows"].passed
    assert "1 places off their mask" in found["rows"].detail


def test_a_mask_without_a_place_costs_nothing(tmp_path):
    sea = SCHEMA.dumps().replace("lower = 49.8", "lower = 51.9")
    (tmp_path / "sea.toml").write_text(sea.replace("lower = 9.8", "lower = 10.9"))
    text = (tmp_path / "sea.toml").read_text().replace("upper = 12.2\n", "upper = 11.1\n")
    (tmp_path / "sea.toml").write_text(text)
    with us.Ledger(tmp_path / "ledger.db") as ledger:
        ledger.open_dataset("homes", us.Budget.of(1, "1e-6"), composition="basic")
        with pytest.raises(SchemaError, match="excludes the whole box"):
            us.release(homes(50), tmp_path / "sea.toml", epsilon=1, ledger=ledger, dataset="homes")
        assert [entry.kind for entry in ledger.entries("homes")] == ["open"]
