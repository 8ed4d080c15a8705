from collections import Counter

import numpy as np
import pytest

from understudy.draft.names import Name
from understudy.draft.words import Sort, among_numbers, prefixes, sort_of

GIVEN, FAMILY = ("Anna", "Luca", "José", "Priya"), ("Rossi", "Braun", "Xyz", "Silva")


def sorted_as(cells, name="x"):
    counts = Counter(cells)
    return sort_of(Name(name), list(counts), np.array(list(counts.values())))


@pytest.mark.parametrize(
    ("cells", "name", "expected"),
    [
        (["a", "b"] * 50, "x", Sort.LIST),
        ([*["a", "b"] * 500, "c"], "x", Sort.LIST),
        ([f"v{i % 90}" for i in range(9000)], "x", Sort.DISCOVER),
        ([f"town {i % 300}" for i in range(900)], "x", Sort.DISCOVER),
        ([f"T{i % 300:05d}" for i in range(900)], "x", Sort.IDENTIFIER),
        ([f"P{i}" for i in range(900)], "x", Sort.IDENTIFIER),
        ([f"store {i % 300}" for i in range(9000)], "store_id", Sort.IDENTIFIER),
        (["A1", "B7", "C3"], "store_id", Sort.IDENTIFIER),
        ([f"store {i % 9}" for i in range(9000)], "store_id", Sort.LIST),
        ([f"a{i % 5}@b.example" for i in range(900)], "x", Sort.IDENTIFIER),
        ([f"+49 30 {i:07d}" for i in range(900)], "x", Sort.IDENTIFIER),
        ([f"DE{i % 400 + 10**15}" for i in range(9000)], "x", Sort.IDENTIFIER),
        ([f"DE{i % 9 + 10**15}" for i in range(9000)], "x", Sort.LIST),
        ([f"{i % 300 + 10**10}" for i in range(9000)], "fips", Sort.DISCOVER),
        ([f"{i % 90 + 10**4}-{i % 90 + 1000}" for i in range(9000)], "zip4", Sort.DISCOVER),
        ([f"dev-{i % 60 * 7919 + 0xA1B2C3D4:08x}" for i in range(9000)], "x", Sort.IDENTIFIER),
        ([f"part {i % 60 + 10**7}" for i in range(9000)], "x", Sort.LIST),
        ([f"esp32-{i * 7919 % 65536:04x}" for i in range(1, 61)] * 99, "x", Sort.IDENTIFIER),
        ([f"{i * 7919 + 10**5}-F" for i in range(1, 61)] * 99, "x", Sort.IDENTIFIER),
        ([f"{i * 7919 + 10**5}-F" for i in range(1, 61)] * 99, "district code", Sort.LIST),
        ([f"E{i:05d}" for i in range(60)] * 99, "x", Sort.IDENTIFIER),
        ([f"0{i * 7919 + 10**6}B0" for i in range(1, 61)] * 99, "BNF code", Sort.LIST),
        ([*["none"] * 999, *[f"AB-{i}" for i in range(1000, 3000)]], "x", Sort.IDENTIFIER),
        ([*["none"] * 999, *[f"job {chr(97 + i)}" for i in range(999)]], "x", Sort.DISCOVER),
        ([f"{a} {b}" for a in GIVEN for b in FAMILY] * 99, "x", Sort.IDENTIFIER),
        ([f"{a}{b}".lower() for a in "abcd" for b in FAMILY] * 99, "operatore", Sort.IDENTIFIER),
        ([f"{i} Mill Road" for i in range(1, 90)] * 9, "x", Sort.IDENTIFIER),
        (
            ["Smith", "Jones", "Lee"] * 9 + [f"name {i}" for i in range(99)],
            "surname",
            Sort.IDENTIFIER,
        ),
        ([f"she came on day {i} and said that it hurts again" for i in range(99)], "x", Sort.PROSE),
        (["Ann", "Bob", "Cem", "Dee", "Eva", "Flo"] * 99, "first name", Sort.LIST),
        ([f"Name{chr(97 + i % 20)}" for i in range(9000)], "director_name", Sort.IDENTIFIER),
        ([f"Name{chr(97 + i % 20)}" for i in range(9000)], "Vorname", Sort.IDENTIFIER),
        ([f"A4:{i % 90:02d}:0B:01:{i % 9:02d}:FF" for i in range(9000)], "x", Sort.IDENTIFIER),
        ([*["please leave the parcel with the people next door"] * 99], "Kommentar", Sort.PROSE),
        ([f"{i // 60 % 99}:{i % 60:02d}" for i in range(99_000)], "x", Sort.PROSE),
        ([f"{i % 28 + 1}/{i % 12 + 1}/19{i % 99}" for i in range(999)], "x", Sort.PROSE),
        ([f"Feb-20{i % 60 + 10}" for i in range(180)], "x", Sort.DISCOVER),
        ([f"{chr(65 + i % 26)}{i % 99}.{i % 7}" for i in range(900)], "icd10", Sort.DISCOVER),
    ],
)
def test_sorts(cells, name, expected):
    assert sorted_as(cells, name) is expected


def test_words_have_no_coarser_codes():
    assert prefixes(Name("diagnosis"), ["A10", "B20", "250.1"]) == (3, 1)
    assert prefixes(Name("diagnosis"), ["Asthma", "Fracture of arm"]) == ()


def coded(cells, name="x"):
    counts = Counter(map(str, cells))
    texts = list(counts)
    found = among_numbers(Name(name), texts, np.array(list(counts.values())))
    return (
        None if found is None else {text for text, code in zip(texts, found, strict=True) if code}
    )


def test_codes_among_numbers():
    assert coded([*range(90), *["N"] * 9, "refused"]) == {"N", "refused"}
    assert coded([*range(90), "90+"]) == {"90+"}
    assert coded([*range(30), *["none"] * 99]) == {"none"}
    assert coded([*range(9), *["none"] * 99]) is None
    assert coded(["0", "1", "2", "3+"]) is None  # brackets
    assert coded([*range(90), "V27", "E909"]) is None  # codes themselves
    assert coded([*range(90), "N"], "zip code") is None
    assert coded(["a", "b", "1"]) is None
