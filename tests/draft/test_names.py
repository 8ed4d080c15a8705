import pytest

from understudy.draft.names import Name, Range


@pytest.mark.parametrize(
    "name",
    [
        "id",
        "ID",
        "patient_nbr",
        "customerID",
        "Case No",
        "SSN",
        "hosp-id",
        "HHID",
        "userid",
        "Patient",
        "no",
        "nhs_number",
        "NHS-Nr.",
        "Kundennummer",
        "numéro_patient",
        "ArtikelNr",
        "PRVDR_NUM",
        "interviewer",
        "Handler",
        "TAIL_NUM",
        "IDNUMBER",
        "Schüler-Nr.",
        "id_cliente",
        "bikeid",
        "社員番号",
        "nº colegiado",
        "N° facture",
        "matrícula",
        "matricula_oficial",
    ],
)
def test_names_that_identify(name):
    assert Name(name).identifies


@pytest.mark.parametrize(
    "name",
    [
        "numbers of patient groups",
        "num_patients",
        "index",
        "straße",
        "paid",
        "grid",
        "valid",
        "education-num",
        "number",
        "rooms",
        "",
        "people",
        "client age",
        "PULocationID",
        "ORIGIN_AIRPORT_ID",
        "type_id",
        "郵便番号",
        "id duration",
    ],
)
def test_names_that_do_not(name):
    assert not Name(name).identifies


def test_people_and_how_to_reach_them():
    assert all(Name(n).of_people for n in ("name", "LastName", "patient name", "surname"))
    assert not any(Name(n).of_people for n in ("product_name", "country name", "nametag"))
    assert all(Name(n).of_persons for n in ("director_name", "First Name", "Vorname", "姓名"))
    assert not Name("name").of_persons
    assert all(Name(n).reaches for n in ("e-mail", "Phone", "home_address", "ip"))


def test_who_somebody_is():
    roles = (
        "program_officer",
        "Klassenlehrer",
        "autore",
        "förare",
        "principal_investigator",
        "edited_by",
        "Saisi par",
    )
    assert all(Name(n).role for n in roles)
    others = (
        "sales_per_agent",
        "n_teacher",
        "author_count",
        "Fahrerlaubnis",
        "reports",
        "group_by",
    )
    assert not any(Name(n).role for n in others)


def test_words_of_any_alphabet_are_whole():
    assert Name("größeKlasse").words == ["größe", "klasse"]
    assert Name("年齢_ID").words == ["年齢", "id"]
    assert Name("Âge").words == ["âge"]


def test_the_last_word_says_whether_it_is_an_amount():
    assert not any(Name(n).amount for n in ("credit_card", "income house", "sales order"))
    assert all(Name(n).amount for n in ("credit", "income_household", "order value", "epoch"))
    assert all(Name(n).amount for n in ("last_modified", "shipped_at"))
    assert not Name("modified_by").amount


def test_codes_and_amounts():
    assert all(Name(n).coded for n in ("zip_code", "OCCODE", "race", "admission_type_id"))
    assert not any(Name(n).coded for n in ("area", "price", "bedrooms"))
    assert all(Name(n).amount for n in ("price", "fnlwgt", "total_rec_int", "salary_cents"))


def test_some_names_speak_of_codes_alone():
    assert all(Name(n).of_codes for n in ("census_tract", "icd9", "type"))
    assert not any(Name(n).of_codes for n in ("area", "group mean", "county unemployment"))


def test_public_bounds_hold_only_what_fits():
    assert Name("age").natural(17, 90) == Range(0, 120)
    assert Name("age").natural(0, 900) is None
    assert Name("win pct").natural(0.2, 0.8) == Range(0, 1)
    assert Name("win pct").natural(0.2, 80) == Range(0, 100)
    assert Name("DAY_OF_WEEK").natural(1, 7) == Range(0, 7)
    assert not Name("X Coordinate (State Plane)").coded
    assert Name("nombre").of_people
    assert Name("average").natural(17, 90) is None
    assert Name("yr_built").natural(1900, 2015) == Range(1900, 2099)
    assert Name("hours-per-week").natural(1, 99) == Range(0, 168)
    assert Name("months since last visit").natural(1, 9) is None
    assert Name("Âge").natural(0, 99) == Name("年齢").natural(18, 90) == Range(0, 120)
    assert Name("Mois").natural(1, 12) == Range(1, 12)
    assert Name("Année d'entrée").natural(1950, 2020) == Range(1900, 2099)
    assert Name("Longitude").natural(-122.5, -121.3) == Range(-180, 180)


def test_whose_rows_are_counted_is_a_person_and_no_visit():
    assert [Name(n).of_a_person for n in ("patient_nbr", "araç_plaka", "encounter_id", "id")] == [
        True, True, False, False,
    ]  # fmt: skip
