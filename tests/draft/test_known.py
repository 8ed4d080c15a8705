import pytest

from understudy.draft.known import beside_order, in_order, whole_list


@pytest.mark.parametrize(
    "ordered",
    [
        ("[0-10)", "[10-20)", "[20-100)", ">=100"),
        ("<30", ">30"),
        ("< 1 year", "1 year", "2 years", "10+ years"),
        ("under 18", "18-24", "25-34", "65 and over"),
        ("less than $10,000", "$10,000 to $19,999", "$20,000 to $29,999"),
        ("<=50K", ">50K"),
        ("<10k", "10k-25k", "25k-50k", ">50k"),
        ("<500k", "500k-1M", "1M-2.5M", ">2.5M"),
        ("0", "1", "2", "3+"),
        ("0-1 km", "2-5 km", ">5 km"),
        ("stage 1", "stage 2", "stage 10"),
        ("9th", "10th", "11th"),
        ("very low", "Low", "medium", "HIGH"),
        ("never", "rarely", "often"),
        ("XS", "S", "M"),
        ("Mon", "Tue", "Sun"),
        ("Montag", "Mittwoch", "Freitag"),
        ("mai", "juin", "août"),
        ("Strongly disagree", "Disagree", "Neither agree nor disagree", "Agree"),
        ("Very dissatisfied", "Neither satisfied nor dissatisfied", "Somewhat satisfied"),
        ("not important", "slightly important", "very important"),
        ("Never", "Less than once a month", "1-3 times a month", "Daily"),
        ("11th", "HS-grad", "Some-college", "Bachelors", "Masters"),
        ("1 - very bad", "2", "3", "4", "5 - very good"),
        ("Stage I", "Stage IIb", "Stage III", "Stage IV"),
        ("bis 17", "18 bis 64", "65 und älter"),
        ("moins de 18", "18-64", "65 et plus"),
        ("stimme eher nicht zu", "teils/teils", "stimme voll und ganz zu"),
        ("Pas du tout d’accord", "Ni d’accord ni pas d’accord", "D’accord"),
        ("Totalmente en desacuerdo", "De acuerdo", "Totalmente de acuerdo"),
        ("per niente", "poco", "abbastanza", "molto"),
        ("Discordo totalmente", "Neutro", "Concordo"),
        ("nooit", "soms", "vaak", "altijd"),
        ("Liberal", "Moderate, middle of the road", "Extremely conservative"),
        ("Sin estudios", "Primaria", "Universidad"),
        ("Ninguno", "Preescolar", "Secundaria", "Licenciatura"),
        ("Minor", "Moderate", "Major", "Extreme"),
        ("Dec-98", "Jan-08", "Feb-08"),
        ("Nov 2009", "Dec 2009", "Jan 2010"),
        ("★", "★★", "★★★★"),
        ("2021-11", "2021-12", "2022-01"),
        ("2021Q4", "2022Q1", "2022Q2"),
        ("Q4 2021", "Q1 2022", "Q2 2022"),
        ("2021-W52", "2022-W01"),
        ("2019/20", "2020/21"),
        ("11/2021", "01/2022"),
        ("A+", "A", "A-", "B+", "F"),
        ("neg", "trace", "1+", "2+"),
        ("Low", "Medium", "High", "Critical"),
        ("aucune", "légère", "modérée", "sévère"),
        ("lun", "mar", "gio", "dom"),
        ("Pazartesi", "Salı", "Çarşamba", "Cumartesi"),
        ("Çok kötü", "Kötü", "Orta", "İyi", "Çok iyi"),
        ("星期一", "星期三", "星期六"),
        ("BAJA", "MEDIA", "ALTA"),
        ("3000元以下", "3000-5000元", "5000元以上"),
        ("unter 35", "35 bis unter 45", "45 und älter"),
        ("18 a 24 años", "25 a 34 años", "35 y más"),
        ("minder dan 15 min", "15-30 min", "meer dan 60 min"),
        ("< 250 €", "250 € - 1 000 €", "> 1 000 €"),
        ("KW 9", "KW 10", "KW 11"),
        ("10 or less", "11-20", "21 or more"),
        ("Pas du tout satisfait", "Peu satisfait", "Satisfait", "Très satisfait"),
        ("måndag", "lördag", "söndag"),
        ("Mycket missnöjd", "Varken eller", "Ganska nöjd"),
        ("None at all", "Not very much", "A fair amount", "A great deal"),
        ("Less than high school", "High school graduate", "Graduate degree"),
        ("Never", "Less often", "About once a day", "Several times a day"),
        ("há 1 dia", "há 2 dias", "há 11 dias"),
        ("1+", "1", "1-", "2", "2-"),
        ("とても不満", "不満", "どちらともいえない", "満足"),
        ("非常不同意", "不同意", "同意"),
    ],
)
def test_orders(ordered):
    assert in_order(sorted(ordered, reverse=True)) == tuple(ordered)


@pytest.mark.parametrize(
    "values",
    [
        ("red", "blue"),
        ("Route 7", "Route 66"),
        ("type 1", "type 2"),
        ("250", "401", "428"),
        ("None", "Norm", ">200"),
        ("S", "M"),
        ("1 - Male", "2 - Female", "3 - Other"),
        ("1 - a", "2", "4"),
        ("I", "V", "X"),
        ("Class IIII", "Class V", "Class X"),
        ("red car", "blue car", "very car"),
        ("2 kg", "3 years"),
        ("98001-1", "98001-2"),
        ("98001-F", "98002-F"),
        ("GB0500A", "GB0513A"),
        ("low",),
        ("May-18", "June-99", "early 08"),
        ("a", "aa", "aaa"),
        ("2021Q1", "2021-Q2"),
        ("2021A01", "2021B02"),
        ("A+", "A-", "B+", "B-"),
    ],
)
def test_no_order(values):
    assert in_order(values) is None


def test_grades_need_a_name():
    assert in_order(["B", "A", "A+", "B-"], graded=True) == ("A+", "A", "B", "B-")
    assert in_order(["B2", "A1", "B1"], graded=True) == ("A1", "B1", "B2")
    assert in_order(["B", "A", "C"]) is None
    assert in_order(["M", "S", "W"], graded=True) is None


def test_whole_lists_keep_the_spelling():
    assert whole_list(["YES", "NO"]) == ("NO", "YES")
    assert whole_list(["はい", "いいえ"]) == ("いいえ", "はい")
    assert whole_list({"jan", "mar", "may", "jun", "jul", "sep", "oct"}) == (
        *("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"),
    )
    states = whole_list(["CA", "NY", "TX", "WA", "ME"])
    assert states is not None
    assert len(states) == 51


def test_one_value_or_a_few_of_many_are_no_list():
    assert whole_list(["No"]) is None
    assert whole_list(["May", "June"]) is None
    assert whole_list(["Yes", "No", "maybe"]) is None
    assert whole_list(["CA", "NY"]) is None


def test_one_value_that_is_no_answer_stands_beside_an_order():
    assert beside_order(["<10", "10-20", "Refused"]) == "Refused"
    assert beside_order(["low", "high", "Don’t know"]) == "Don’t know"
    assert beside_order(["low", "high", "refused", "don't know"]) is None
    assert beside_order(["low", "none"]) is None
