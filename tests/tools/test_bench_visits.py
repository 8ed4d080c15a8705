"""Visits are repeatable, legal, and have the structure they promise."""

import numpy as np
from bench.visits import KEY, LARGEST, ORDER, PATIENT_COLUMNS, VISIT_COLUMNS, visits


def test_tables_are_repeatable_legal_and_in_order():
    one, same, other = visits(500, 1), visits(500, 1), visits(500, 2)
    assert one.visits.equals(same.visits)
    assert one.patients.equals(same.patients)
    assert not one.visits.equals(other.visits)
    for table, columns in ((one.patients, PATIENT_COLUMNS), (one.visits, VISIT_COLUMNS)):
        for column in columns:
            assert len(np.unique(column.encode(table[column.name]))) > 1
    whose, place = (one.visits[name].to_numpy() for name in (KEY, ORDER))
    assert set(np.bincount(whose)[1:]) == set(range(1, LARGEST + 1))
    later = np.flatnonzero(whose[1:] == whose[:-1]) + 1
    assert (place[later] == place[later - 1] + 1).all()


def test_age_never_falls_and_what_stays_mostly_stays():
    table = visits(2_000, 3).visits
    whose, age, drug = (table[name].to_numpy() for name in (KEY, "age", "drug"))
    later = np.flatnonzero(whose[1:] == whose[:-1]) + 1
    assert (age[later] >= age[later - 1]).all()
    assert np.mean(drug[later] == drug[later - 1]) > 0.8
