import json

import pytest

from understudy.errors import SchemaError
from understudy.schema import (
    Boolean,
    Category,
    Identifier,
    Incomplete,
    Schema,
    Text,
    import_mbi,
    import_sdv,
)


class TestMbi:
    def test_each_column_is_a_category_of_integers(self, tmp_path):
        text = '{"age": 85, "sex": 2}'
        schema = import_mbi(text)
        assert schema.shape == (85, 2)
        assert schema.columns[1] == Category("sex", (0, 1), dtype="int64")
        path = tmp_path / "domain.json"
        path.write_text(text)
        assert import_mbi(path) == schema
        assert import_mbi(str(path)) == schema
        schema.require_confirmed()

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ('{"age": 0}', "column 'age' has the size 0"),
            ('{"age": "85"}', "column 'age' has the size '85'"),
            ('{"age": true}', "column 'age' has the size True"),
            ('{"age": 1000000}', "column 'age' has 1000000 values, more than 10000; merge"),
            ('{"age": 2, "age": 3}', "'age' is there more than once"),
            ("{}", "expected a JSON object"),
            ('{"age": ', "not JSON"),
            ("nowhere.json", "nowhere.json: cannot be read"),
        ],
    )
    def test_what_is_wrong(self, text, said):
        with pytest.raises(SchemaError) as caught:
            import_mbi(text)
        assert said in str(caught.value)


COLUMNS = {
    "guest_email": {"sdtype": "email", "pii": True},
    "has_rewards": {"sdtype": "boolean"},
    "room_type": {"sdtype": "categorical"},
    "fee": {"sdtype": "numerical", "computer_representation": "Float"},
    "nights": {"sdtype": "numerical", "computer_representation": "Int16"},
    "checkin": {"sdtype": "datetime", "datetime_format": "%d %b %Y"},
    "booked": {"sdtype": "datetime", "datetime_format": "%Y-%m-%d %H:%M:%S"},
    "room": {"sdtype": "id", "regex_format": "HID_[0-9]{3}"},
    "code": {"sdtype": "id", "regex_format": "[A-Z]{2}"},
    "phone": {"sdtype": "phone_number"},
    "notes": {"sdtype": "text"},
    "what": {"sdtype": "unknown"},
}
TABLE = {"primary_key": "guest_email", "columns": COLUMNS}


class TestSdv:
    @pytest.mark.parametrize(
        "document",
        [
            {"METADATA_SPEC_VERSION": "SINGLE_TABLE_V1", **TABLE},
            {"METADATA_SPEC_VERSION": "V1", "tables": {"guests": TABLE}, "relationships": []},
        ],
        ids=["single", "tables"],
    )
    def test_every_sdtype(self, document):
        schema = import_sdv(json.dumps(document))
        by_name = {column.name: column for column in schema.columns}
        assert [*by_name] == [*COLUMNS]
        assert by_name["guest_email"] == Identifier("guest_email")
        assert by_name["phone"] == Identifier("phone")
        assert by_name["room"] == Identifier("room", "HID_{:03d}")
        assert by_name["code"] == Identifier("code")
        assert by_name["has_rewards"] == Boolean("has_rewards", nullable=True)
        assert by_name["notes"] == Text("notes", nullable=True)
        assert by_name["room_type"] == Incomplete(
            "room_type", "category", ("values",), nullable=True
        )
        assert by_name["nights"] == Incomplete(
            "nights", "integer", ("lower", "upper"), dtype="int16", nullable=True
        )
        fee = by_name["fee"]
        assert isinstance(fee, Incomplete)
        assert (fee.wanted, fee.facts) == ("number", {"bins": 32})
        checkin, booked = by_name["checkin"], by_name["booked"]
        assert isinstance(checkin, Incomplete)
        assert isinstance(booked, Incomplete)
        assert (checkin.wanted, checkin.facts) == ("date", {"format": "%d %b %Y"})
        assert booked.wanted == "datetime"

    def test_the_file_says_what_is_missing_and_takes_it(self):
        metadata = {"columns": {k: COLUMNS[k] for k in ("room_type", "nights", "checkin", "fee")}}
        schema = import_sdv(json.dumps(metadata))
        text = schema.dumps()
        assert "THIS IS NOT COMPLETE" in text
        assert 'missing = ["values"]' in text
        assert Schema.loads(text) == schema
        with pytest.raises(SchemaError, match=r"'room_type' \(values\), 'nights' \(lower, upper\)"):
            schema.require_confirmed()
        filled = (
            text.replace('missing = ["values"]', 'values = ["BASIC", "SUITE"]')
            .replace('missing = ["lower", "upper"]', "lower = 1\nupper = 30", 1)
            .replace('missing = ["lower", "upper"]', "lower = 2020-01-01\nupper = 2020-12-31", 1)
            .replace('missing = ["lower", "upper"]', "lower = 0\nupper = 100", 1)
        )
        done = Schema.loads(filled)
        done.require_confirmed()
        assert done.shape == (3, 31, 367, 33)

    @pytest.mark.parametrize(
        ("document", "said"),
        [
            ({"tables": {"a": TABLE, "b": TABLE}}, "must describe one table, and lists a, b"),
            ({"tables": {}}, "lists none"),
            ({"fields": {}}, 'there is no "columns"'),
            ({"columns": {"x": {}}}, "column 'x' has no \"sdtype\""),
            ({"columns": {"x": 3}}, "column 'x' has no \"sdtype\""),
        ],
    )
    def test_what_is_wrong(self, document, said):
        with pytest.raises(SchemaError) as caught:
            import_sdv(json.dumps(document))
        assert said in str(caught.value)
