"""Places: rows on the mask always, whatever the mask, the model and the declared type."""

import json
import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.thorough import examples
from understudy.errors import SchemaError
from understudy.schema import Category, Centres, Geography, Number, Polygons, Raster, Schema

# A bay cut into a coast, and a lake.
COAST = (
    ((10.0, 50.0), (12.0, 50.0), (12.0, 52.0), (11.2, 51.1), (10.8, 51.1), (10.0, 52.0)),
    ((11.0, 50.3), (11.5, 50.3), (11.5, 50.7), (11.0, 50.7)),
)
LAND = Polygons(COAST)
PIXELS = Raster((9.9, 49.9), 0.25, ("000000000", "011111110", "010001110", "011111110") * 2)
TOWNS = Centres(((10.1, 50.1), (10.12, 50.11), (11.9, 51.7), (11.75, 50.35)))
MASKS = {"polygons": LAND, "grid": PIXELS, "centroids": TOWNS}
DTYPES = {
    "double": {},
    "cents": {"decimals": 2},
    "float32": {"dtype": "float32"},
    "decimal": {"dtype": "decimal128(9, 3)"},
    "text": {"decimals": 3, "dtype": "string"},
}


def places(mask, *, bins=(12, 15), box=(49.8, 52.1, 9.7, 12.4), nullable=False, **facts) -> Schema:
    south, north, west, east = box
    return Schema(
        (
            Category("kind", ("a", "b")),
            Number("lat", south, north, bins[0], nullable=nullable, **facts),
            Number("long", west, east, bins[1], nullable=nullable, **facts),
        ),
        geography=(Geography("lat", "long", mask),),
    )


def every_code(schema: Schema, times: int = 3) -> list[np.ndarray]:
    """Every pair of bins, several times: what the wildest model may draw."""
    grids = np.meshgrid(*(np.arange(size) for size in schema.shape), indexing="ij")
    return [np.tile(grid.reshape(-1), times) for grid in grids]


def values(table: pa.Table, name: str) -> list[float | None]:
    return [None if v is None else float(v) for v in table.column(name).to_pylist()]


def crossings(ring, latitude, longitude) -> int:
    """How many edges lie east of a point, edge by edge."""
    found = 0
    for (x0, y0), (x1, y1) in zip(ring, (*ring[1:], ring[0]), strict=True):
        if (y0 > latitude) != (y1 > latitude):
            found += longitude < x0 + (latitude - y0) / (y1 - y0) * (x1 - x0)
    return found


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_lie_on_the_mask_and_keep_their_projected_bins(mask, dtype):
    schema = places(MASKS[mask], nullable=True, **DTYPES[dtype])
    codes = every_code(schema)
    table = schema.decode(codes, np.random.default_rng(0))
    assert schema.illegal(table) == []
    projected = schema.project(codes)
    for now, then in zip(schema.encode(table), projected, strict=True):
        assert np.array_equal(now, then)
    for now, then in zip(schema.project(projected), projected, strict=True):
        assert np.array_equal(now, then)
    lacks = (codes[1] == schema.column("lat").cells) | (codes[2] == schema.column("long").cells)
    for at in (0, 1, 2):  # what has no place, and what is not one, is left alone
        assert np.array_equal(projected[at][lacks], codes[at][lacks])
    assert np.array_equal(projected[0], codes[0])


def test_rows_lie_inside_the_polygons_by_a_test_of_another_make():
    table = places(LAND).decode(every_code(places(LAND)), np.random.default_rng(1))
    for latitude, longitude in zip(values(table, "lat"), values(table, "long"), strict=True):
        assert sum(crossings(ring, latitude, longitude) for ring in COAST) % 2 == 1


def test_rows_lie_at_the_centroids():
    schema = places(TOWNS)
    table = schema.decode(every_code(schema), np.random.default_rng(1))
    found = set(zip(values(table, "long"), values(table, "lat"), strict=True))
    assert found == set(TOWNS.positions)


@pytest.mark.parametrize("mask", MASKS)
def test_a_pair_of_bins_goes_to_the_nearest_one_with_a_place(mask):
    schema = places(MASKS[mask])
    codes = every_code(schema, 1)
    _, y, x = schema.project(codes)
    held = sorted({(int(a), int(b)) for a, b in zip(y, x, strict=True)})
    lat, long = schema.column("lat"), schema.column("long")
    narrow = math.cos(math.radians((lat.lower + lat.upper) / 2))
    tall = (lat.upper - lat.lower) / lat.cells
    wide = (long.upper - long.lower) / long.cells * narrow
    for here in zip(codes[1], codes[2], y, x, strict=True):
        a, b, at_y, at_x = map(int, here)
        far = [math.hypot((a - c) * tall, (b - d) * wide) for c, d in held]
        assert math.hypot((a - at_y) * tall, (b - at_x) * wide) <= min(far) + 1e-9


@settings(max_examples=examples(15, 30))
@given(
    st.lists(
        st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=3, max_size=9, unique=True
    ),
    st.integers(0, 2**32 - 1),
)
def test_contains_and_over_agree_with_the_edges_one_by_one(points, key):
    ring = tuple((x / 10, y / 10) for x, y in points)
    mask = Polygons((ring,))
    rng = np.random.default_rng(key)
    lines, columns = rng.integers(-1, 22, 6) / 10, rng.integers(-1, 22, 6) / 10
    wanted = [[crossings(ring, y, x) % 2 == 1 for x in columns] for y in lines]
    assert mask.over(lines, columns).tolist() == wanted
    y, x = np.repeat(lines, 6), np.tile(columns, 6)
    assert mask.contains(y, x).tolist() == [flag for row in wanted for flag in row]


def test_boxes_that_no_edge_cuts_are_inside_or_outside_as_a_whole():
    souths, wests = np.arange(49.5, 52.5, 0.1), np.arange(9.5, 12.5, 0.1)
    cut = LAND.cut(souths, souths + 0.1, wests, wests + 0.1)
    assert cut.any()
    assert not cut.all()
    inside = [
        LAND.over(souths + dy, wests + dx) for dy in (0.001, 0.05, 0.099) for dx in (0.001, 0.099)
    ]
    for other in inside[1:]:
        assert np.array_equal(other[~cut], inside[0][~cut])


@pytest.mark.parametrize("mask", MASKS)
def test_a_schema_holds_its_mask(mask):
    schema = places(MASKS[mask])
    again = Schema.loads(schema.dumps())
    assert again == schema
    assert again.digest() == schema.digest() != places(MASKS[mask], bins=(12, 14)).digest()


def test_rows_off_the_mask_are_illegal():
    schema = places(LAND)
    table = pa.table({"kind": ["a", "b"], "lat": [51.9, 50.1], "long": [11.0, 10.5]})
    table = table.cast(schema.arrow_schema)
    assert schema.illegal(table) == ["columns 'lat' and 'long' have 1 places off their mask"]


# Files

COLUMNS = """
[understudy]
version = 1
[[column]]
name = "lat"
type = "number"
lower = 49.8
upper = 52.1
bins = 12
[[column]]
name = "long"
type = "number"
lower = 9.7
upper = 12.4
bins = 15
[[geography]]
latitude = "lat"
longitude = "long"
"""


def geojson() -> str:
    closed = [[list(position) for position in (*ring, ring[0])] for ring in COAST]
    feature = {"type": "Feature", "geometry": {"type": "Polygon", "coordinates": closed}}
    return json.dumps({"type": "FeatureCollection", "features": [feature]})


ASCII = """ncols 3
nrows 2
xllcorner 10.0
yllcorner 50.0
cellsize 0.5
NODATA_value -9999
0 1 1
1 1 -9999
"""
TABLE = "region,Latitude,Longitude\nnorth,51.7,11.9\nsouth,50.1,10.1\n"


@pytest.mark.parametrize(
    ("name", "text", "mask"),
    [
        ("land.geojson", geojson(), LAND),
        ("land.asc", ASCII, Raster((10.0, 50.0), 0.5, ("011", "110"))),
        ("towns.csv", TABLE, Centres(((11.9, 51.7), (10.1, 50.1)))),
    ],
)
def test_a_mask_in_a_file_beside_the_schema(tmp_path, name, text, mask):
    (tmp_path / name).write_text(text)
    (tmp_path / "s.toml").write_text(COLUMNS + f'mask = "{name}"\n')
    schema = Schema.load(tmp_path / "s.toml")
    assert schema.geography == (Geography("lat", "long", mask),)
    assert Schema.loads(schema.dumps()) == schema  # without the file


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("gone.geojson", None, "no such file"),
        ("land.geojson", "{", "not JSON"),
        ("land.geojson", '{"type": "Point", "coordinates": [1, 2]}', "'Point'"),
        ("land.geojson", '{"type": "Polygon", "coordinates": [[[10, 50], [11, 51]]]}', "three"),
        ("land.geojson", '{"type": "Polygon", "coordinates": [[[1, 95], [0, 0], [1, 0]]]}', "95"),
        ("land.asc", "ncols 2\n1 1\n", "lacks cellsize, nrows"),
        ("land.asc", ASCII.replace("0 1 1", "0 1"), "2 lines of 3"),
        ("towns.csv", "a,b\n1,2\n", "latitude and longitude"),
        ("land.shp", "", "must end in .geojson"),
    ],
)
def test_bad_files_are_named(tmp_path, name, text, said):
    if text is not None:
        (tmp_path / name).write_text(text)
    (tmp_path / "s.toml").write_text(COLUMNS + f'mask = "{name}"\n')
    with pytest.raises(SchemaError, match=said) as caught:
        Schema.load(tmp_path / "s.toml")
    assert name in str(caught.value)


def test_a_text_from_elsewhere_reads_no_file(tmp_path):
    (tmp_path / "land.geojson").write_text(geojson())
    with pytest.raises(SchemaError, match="names a file"):
        Schema.loads(COLUMNS + f'mask = "{tmp_path / "land.geojson"}"\n')


@pytest.mark.parametrize(
    ("said", "make"),
    [
        ("excludes the whole box", lambda: places(Raster((9, 49), 1.0, ("0000",) * 4))),
        ("excludes the whole box", lambda: places(LAND, box=(51.5, 51.9, 10.9, 11.1))),
        ("outside the columns' box", lambda: places(LAND, box=(20, 30, 20, 30))),
        ("swapped in one of the two", lambda: places(LAND, box=(10, 12, 50, 52))),
        ("latitude lies in -90..90 degrees; are", lambda: places(LAND, box=(-122, -100, 40, 50))),
        ("longitude lies in -180..180", lambda: places(LAND, box=(50, 52, 0, 500_000))),
        ("use fewer bins", lambda: places(LAND, bins=(2000, 2000))),
        ("says nothing", lambda: Schema.loads(COLUMNS)),
        ("unknown key 'polygon'", lambda: Schema.loads(COLUMNS + "polygon = [[1, 2]]")),
        ("must be a list", lambda: Schema.loads(COLUMNS + "polygons = 3")),
        ("three or more", lambda: Schema.loads(COLUMNS + "polygons = [[[10, 50], [11, 51]]]")),
        ("0 and 1", lambda: Raster((9, 49), 1.0, ("01", "2x"))),
        ("equally long", lambda: Raster((9, 49), 1.0, ("01", "1"))),
        ("above zero", lambda: Raster((9, 49), 0.0, ("01",))),
        ("is it \\[latitude, longitude\\]", lambda: Centres(((47.5, -122.2),))),
        ("lists none", lambda: Centres(())),
    ],
)
def test_what_cannot_be_is_refused_when_the_schema_is_made(said, make):
    with pytest.raises(SchemaError, match=said):
        make()


@pytest.mark.parametrize(
    ("latitude", "longitude", "said"),
    [
        ("lat", "lat", "column 'lat' is used more than once"),
        ("lat", "lon", "'lon' is not a column (did you mean 'long'"),
        ("kind", "long", "type 'category'; declare it with type = \"number\", public bounds"),
    ],
)
def test_columns_that_are_no_place(latitude, longitude, said):
    columns = places(LAND).columns
    with pytest.raises(SchemaError) as caught:
        Schema(columns, geography=(Geography(latitude, longitude, LAND),))
    assert said in str(caught.value)


def test_a_column_is_in_one_place_only():
    columns = (*places(LAND).columns, Number("lat2", 49.8, 52.1, 12))
    twice = (Geography("lat", "long", LAND), Geography("lat2", "long", LAND))
    with pytest.raises(SchemaError, match="'long' is used more than once"):
        Schema(columns, geography=twice)
