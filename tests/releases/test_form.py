"""The form of a bundle: what is refused before anything in it is believed, with the field's name."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest

from understudy.errors import BundleError
from understudy.releases import form


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"a": 1, "a": 2}', "a key twice"),
        ('{"a": NaN}', "NaN is no number"),
        ('{"a": 1e999}', "no number that a float can hold"),
        ('{"a": 99999999999999999999}', "beyond 64 bits"),
        ("[" * 80 + "]" * 80, "nested deeper than 64"),
        ('{"a": "' + "x" * (form.LONGEST_TEXT + 1) + '"}', "a text of more than"),
        ("[" + "1," * form.MOST_VALUES + "1]", "more than 1,000,000 values"),
        ("\ufeff{}", "is not JSON"),
    ],
)
def test_json_that_says_more_than_one_thing_or_too_much(text, told):
    with pytest.raises(BundleError, match=told):
        form.strict_json(text.encode(), "x.json")


def test_json_is_read():
    assert form.strict_json(b'{"a": [1, 2.5, "\xc3\xa9"]}', "x") == {"a": [1, 2.5, "é"]}


@pytest.fixture(scope="module")
def manifest(made, tmp_path_factory):
    folder = made.save(tmp_path_factory.mktemp("form") / "r")
    return json.loads((folder / "release.json").read_bytes())


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        (("rows",), True, "release.json.rows = True must be a whole number"),
        (("promise", "epsilon"), 1.0, "promise.epsilon = 1.0 must be an exact decimal"),
        (("certificate", "bound"), 1.5, "certificate.bound = 1.5 must be a number from 0 to 1"),
        (("ledger", "entries"), [], "ledger.entries"),
        (("certificate", "colour"), 1, "has 'colour', which the format does not have"),
        (
            ("ledger", "entries", 0, "body", "plan", 0, "event", "kind"),
            "x",
            "kind = 'x' must be one",
        ),
    ],
)
def test_every_field_has_its_type_and_range(manifest, path, value, told):
    form.require_manifest(manifest)
    changed = copy.deepcopy(manifest)
    place = changed
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    with pytest.raises(BundleError, match=told):
        form.require_manifest(changed)


@pytest.mark.parametrize("name", ["promise", "workload", "digest"])
def test_no_field_may_be_missing(manifest, name):
    with pytest.raises(BundleError, match=f"lacks '{name}'"):
        form.require_manifest({key: value for key, value in manifest.items() if key != name})


def test_arrays_are_those_of_the_description(tmp_path):
    description = {"kind": "empirical", "shape": [2, 3]}
    codes = {f"column_{i}": np.zeros(4, np.uint8) for i in range(2)}
    np.savez(tmp_path / "good.npz", **codes)
    form.require_arrays(tmp_path / "good.npz", description)
    np.savez_compressed(tmp_path / "packed.npz", **codes)
    with pytest.raises(BundleError, match=r"packed; arrays are stored|claims more bytes"):
        form.require_arrays(tmp_path / "packed.npz", description)
    np.savez(tmp_path / "more.npz", **codes, column_2=np.zeros(4, np.uint8))
    with pytest.raises(BundleError, match="does not hold the arrays"):
        form.require_arrays(tmp_path / "more.npz", description)


def test_links_and_large_files_are_refused(tmp_path):
    (tmp_path / "schema.toml").symlink_to("/etc/passwd")
    with pytest.raises(BundleError, match="not a plain file"):
        form.require_file(tmp_path / "schema.toml")
    with pytest.raises(BundleError, match=r"lacks model\.json"):
        form.require_file(tmp_path / "model.json")
    with open(tmp_path / "report.html", "wb") as file:
        file.truncate(form.LARGEST["report.html"] + 1)
    with pytest.raises(BundleError, match="at most 2,097,152"):
        form.require_file(tmp_path / "report.html")
