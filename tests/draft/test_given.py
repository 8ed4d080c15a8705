import pytest

from understudy.draft.given import names_people


@pytest.mark.parametrize(
    "texts",
    [
        ("Rossi, Anna", "Conti, Luca", "Xyz, Marco", "Greco, Giulia"),
        ("ANNA ROSSI", "LUCA CONTI", "QWERTZ XYZ", "JOSÉ SILVA"),
        ("Dr. Braun", "Dra. Xyz", "Prof. Abc"),
        ("Fr. Müller", "Hr. Qwertz", "Fr. Koch"),
        ("BERNARD", "MARTIN", "QWERTZ", "ROUX"),
        ("Priya", "Rahul", "Xyz", "Neha"),
        ("Conti, Jennifer, MD", "Qwertz, Linda, MD", "Xyz, Anna, PhD", "Abc, Luca, MD"),
        ("AnthonyW", "BarbaraS", "JohnQ"),
        ("Anna van den Xyz", "Maria de la Abc", "João da Qwertz", "Ben von der Uvw"),
        ("A.B.", "C. D.", "E.F.G.", "J.-P."),
        ("jsmith", "kpatel", "svc_sync", "mmuller"),
        ("张伟", "李秀兰", "王芳"),
        ("中村課長", "佐藤 花子", "山本健一"),
        ("김민준", "이서연", "박지호"),
    ],
)
def test_names_of_people(texts):
    assert names_people(texts)


@pytest.mark.parametrize(
    "texts",
    [
        ("Jackson County", "Clark County", "Martin County", "Allen County"),
        ("Santa Maria", "San Juan", "San Pedro", "Santa Rosa"),
        ("St. Mary Hospital", "Mercy Hospital", "St. James Hospital"),
        ("Ford", "Toyota", "Mercedes", "Honda"),
        ("Jackson", "Lincoln", "Dallas", "Houston", "Austin"),
        ("rosa", "schwarz", "blau", "grün", "gelb"),
        ("Dr 12", "Dr 13"),
        ("Jan", "Feb", "Mar", "Apr"),
        ("James 1", "Mary 2", "Anna 3"),
        ("award", "across", "bros", "sking"),
        ("高血压", "胃炎", "腰痛", "湿疹"),
        ("office manager", "sales manager", "nurse"),
    ],
)
def test_names_of_things(texts):
    assert not names_people(texts)
