"""Lists and orders that everybody knows: weekdays, months, yes and no, brackets, grades, scales.

They are public, so a draft may write them down whole, whichever of their values the rows hold.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from understudy.draft.lists import items, lists

_STATES = items("""
    AL, AK, AZ, AR, CA, CO, CT, DE, DC, FL, GA, HI, ID, IL, IN, IA, KS, KY, LA, ME, MD, MA, MI,
    MN, MS, MO, MT, NE, NV, NH, NJ, NM, NY, NC, ND, OH, OK, OR, PA, RI, SC, SD, TN, TX, UT, VT,
    VA, WA, WV, WI, WY
""")
_CYCLES = lists("""
    monday, tuesday, wednesday, thursday, friday, saturday, sunday;
    mon, tue, wed, thu, fri, sat, sun;
    january, february, march, april, may, june, july, august, september, october, november,
      december;
    jan, feb, mar, apr, may, jun, jul, aug, sep, oct, nov, dec;
    montag, dienstag, mittwoch, donnerstag, freitag, samstag, sonntag;
    lundi, mardi, mercredi, jeudi, vendredi, samedi, dimanche;
    lunes, martes, miércoles, jueves, viernes, sábado, domingo;
    lunedì, martedì, mercoledì, giovedì, venerdì, sabato, domenica;
    maandag, dinsdag, woensdag, donderdag, vrijdag, zaterdag, zondag; mo, di, mi, do, fr, sa, so;
    januar, februar, märz, april, mai, juni, juli, august, september, oktober, november, dezember;
    janvier, février, mars, avril, mai, juin, juillet, août, septembre, octobre, novembre,
      décembre;
    enero, febrero, marzo, abril, mayo, junio, julio, agosto, septiembre, octubre, noviembre,
      diciembre;
    gennaio, febbraio, marzo, aprile, maggio, giugno, luglio, agosto, settembre, ottobre,
      novembre, dicembre;
    janeiro, fevereiro, março, abril, maio, junho, julho, agosto, setembro, outubro, novembro,
      dezembro;
    januari, februari, maart, april, mei, juni, juli, augustus, september, oktober, november,
      december;
    jan, feb, mär, apr, mai, jun, jul, aug, sep, okt, nov, dez;
    segunda-feira, terça-feira, quarta-feira, quinta-feira, sexta-feira, sábado, domingo;
    segunda, terça, quarta, quinta, sexta, sábado, domingo;
    måndag, tisdag, onsdag, torsdag, fredag, lördag, söndag;
    mandag, tirsdag, onsdag, torsdag, fredag, lørdag, søndag;
    poniedziałek, wtorek, środa, czwartek, piątek, sobota, niedziela;
    lun, mar, mer, jeu, ven, sam, dim; lun, mar, mié, jue, vie, sáb, dom;
    lun, mar, mer, gio, ven, sab, dom; seg, ter, qua, qui, sex, sáb, dom;
    ma, di, wo, do, vr, za, zo; mån, tis, ons, tor, fre, lör, sön;
    pazartesi, salı, çarşamba, perşembe, cuma, cumartesi, pazar;
    ocak, şubat, mart, nisan, mayıs, haziran, temmuz, ağustos, eylül, ekim, kasım, aralık;
    月, 火, 水, 木, 金, 土, 日; 月曜日, 火曜日, 水曜日, 木曜日, 金曜日, 土曜日, 日曜日;
    星期一, 星期二, 星期三, 星期四, 星期五, 星期六, 星期日;
    周一, 周二, 周三, 周四, 周五, 周六, 周日;
    jan, feb, mrt, apr, mei, jun, jul, aug, sep, okt, nov, dec;
    janv, févr, mars, avr, mai, juin, juil, août, sept, oct, nov, déc;
    ene, feb, mar, abr, may, jun, jul, ago, sep, oct, nov, dic;
    gen, feb, mar, apr, mag, giu, lug, ago, set, ott, nov, dic;
    jan, fev, mar, abr, mai, jun, jul, ago, set, out, nov, dez;
    jan, feb, mar, apr, maj, jun, jul, aug, sep, okt, nov, dec;
    januari, februari, mars, april, maj, juni, juli, augusti, september, oktober, november,
      december;
    januar, februar, marts, april, maj, juni, juli, august, september, oktober, november,
      december;
    styczeń, luty, marzec, kwiecień, maj, czerwiec, lipiec, sierpień, wrzesień, październik,
      listopad, grudzień
""")
_LISTS = _CYCLES + lists("""
    no, yes; n, y; female, male; f, m; false, true; nein, ja; n, j; non, oui; no, sí; no, si;
    não, sim; nee, ja; nej, ja; nei, ja; nie, tak; hayır, evet; no, sì; femme, homme;
    mujer, hombre; femmina, maschio; vrouw, man; kvinna, man; weiblich, männlich; w, m;
    いいえ, はい; 否, 是; 女, 男
""")


_STRENGTHS = """
    completely {}, totally {}, fully {}, strongly {}, extremely {}, very {}, definitely {}, mostly {},
    {} strongly, {}, {} somewhat, {} slightly, rather {}, somewhat {}, moderately {}, fairly {},
    slightly {}, a little {}, tend to {}, probably {}
"""


def _towards(worse: str, better: str) -> tuple[str, ...]:
    """From one pole to the other, by how strongly; a survey uses some of these words."""
    one, other = (items(_STRENGTHS.replace("{}", pole)) for pole in (worse, better))
    neither = f"neither {worse} nor {better}, neither {better} nor {worse}"
    middle = items(f"neutral, moderate, neither, {neither}, undecided, unsure, not sure")
    return (*one, *middle, *other[::-1])


_POLES = lists("""
    disagree, agree; dissatisfied, satisfied; unlikely, likely; unimportant, important;
    difficult, easy; negative, positive; unsafe, safe; liberal, conservative; oppose, favor;
    oppose, support; disapprove, approve; unfavorable, favorable; dislike, like; worse, better
""")
_ENGLISH = lists("""
    none, very low, low, lower, medium, moderate, normal, high, higher, very high, critical,
      urgent;
    none, minimal, mild, minor, moderate, major, severe, extreme, critical, fatal;
    very poor, poor, fair, average, good, very good, excellent, outstanding;
    inadequate, requires improvement, good, outstanding;
    debug, info, notice, warn, warning, error, critical, fatal;
    neg, negative, trace, 1+, 2+, 3+, 4+; very bad, bad, ok, okay, good, very good;
    never, almost never, rarely, seldom, occasionally, sometimes, about half the time, often,
      frequently, usually, most of the time, very often, almost always, always;
    not, not at all, not very, not too, a little, slightly, rather, somewhat, moderately, fairly,
      pretty, quite, quite a bit, very, very much, a lot, extremely, completely;
    never, not at all, less often, rarely, less than once a year, once a year, a few times a year,
      less than once a month, less than monthly, once a month, 1 3 times a month, 2 3 times a
      month, a few times a month, several times a month, once a week, 1 2 times a week, 2 3 times
      a week, several days a week, a few times a week, several times a week, some days, most days,
      nearly every day, daily, every day, about once a day, once a day, several times a day;
    none, none at all, nothing, hardly any, very little, a little, little, not very much, not
      much, only some, some, a moderate amount, a fair amount, quite a lot, quite a bit, a good
      deal, a lot, a great deal;
    far too little, too little, about right, just right, too much, far too much;
    much worse, worse, a little worse, somewhat worse, slightly worse, the same, same, about the
      same, unchanged, no change, slightly better, somewhat better, a little better, better,
      improved, much better, much improved;
    definitely not, probably not, not sure, might or might not, maybe, possibly, probably,
      probably yes, definitely, definitely yes;
    far below average, below average, average, above average, far above average;
    once, twice, three times, more than three times;
    no schooling, no formal education, no formal, no qualifications, less than high school, some
      high school, preschool, kindergarten, primary, primary school, elementary, elementary
      school, 1st 4th, 5th 6th, 7th 8th, middle school, lower secondary, 9th, 10th, 11th, 12th,
      secondary, secondary school, upper secondary, high school, hs grad, high school graduate,
      high school diploma, vocational, some college, assoc voc, assoc acdm, associate, associate
      degree, associates, tertiary, bachelor, bachelors, bachelor degree, bachelor's, bachelor's
      degree, university, some graduate school, graduate degree, graduate school, master, masters,
      master degree, master's, master's degree, postgraduate, prof school, doctorate, doctoral,
      doctoral degree, phd;
    tiny, very small, small, medium, large, very large, extra large, huge;
    xxs, xs, s, m, l, xl, xxl, 2xl, xxxl, 3xl, 4xl, 5xl;
    beginner, novice, elementary, intermediate, advanced, expert;
    trainee, junior, mid, senior, lead, principal; freshman, sophomore, junior, senior;
    newborn, infant, toddler, child, teen, young, adult, middle-aged, senior;
    hourly, daily, weekly, biweekly, fortnightly, monthly, quarterly, yearly;
    freezing, cold, cool, mild, warm, hot; bronze, silver, gold, platinum, diamond;
    basic, standard, plus, premium; underweight, normal, overweight, obese;
    first, second, third, fourth, fifth
""")
_LOCAL = lists("""
    stimme überhaupt nicht zu, stimme gar nicht zu, lehne völlig ab, stimme nicht zu, lehne ab,
      stimme eher nicht zu, lehne eher ab, teils/teils, teils teils, weder noch, neutral,
      unentschieden, stimme teilweise zu, stimme eher zu, stimme zu, stimme voll zu, stimme völlig
      zu, stimme voll und ganz zu;
    trifft überhaupt nicht zu, trifft gar nicht zu, trifft nicht zu, trifft eher nicht zu, trifft
      kaum zu, teils/teils, teils teils, weder noch, neutral, trifft teilweise zu, trifft eher zu,
      trifft zu, trifft voll zu, trifft völlig zu, trifft voll und ganz zu;
    überhaupt nicht zufrieden, sehr unzufrieden, unzufrieden, nicht zufrieden, wenig zufrieden,
      eher unzufrieden, teils/teils, teils teils, weder noch, neutral, eher zufrieden, zufrieden,
      sehr zufrieden;
    völlig unwichtig, überhaupt nicht wichtig, unwichtig, nicht wichtig, eher unwichtig, weniger
      wichtig, teils/teils, teils teils, weder noch, neutral, eher wichtig, wichtig, sehr wichtig;
    nie, niemals, fast nie, selten, gelegentlich, ab und zu, manchmal, oft, häufig, meistens, sehr
      oft, sehr häufig, fast immer, immer;
    sehr schlecht, schlecht, eher schlecht, mittelmäßig, mittel, befriedigend, eher gut, gut, sehr
      gut, ausgezeichnet;
    gar nicht, überhaupt nicht, kaum, wenig, etwas, mäßig, ziemlich, stark, sehr, sehr stark, voll
      und ganz;
    keine, leicht, leichte, mäßig, mittelschwer, schwer, sehr schwer;
    aucun, aucune, minime, léger, légère, modéré, modérée, important, importante, sévère, grave,
      extrême;
    kein abschluss, hauptschule, realschule, abitur, bachelor, master, promotion;
    sin estudios, ninguno, preescolar, primaria, secundaria, bachillerato, preparatoria, formación
      profesional, licenciatura, universidad, máster, maestría, posgrado, doctorado;
    aucun diplôme, primaire, collège, lycée, bac, licence, master, doctorat;
    keine, sehr niedrig, niedrig, gering, mittel, mittelmäßig, hoch, sehr hoch;
    pas du tout d'accord, totalement en désaccord, en désaccord, pas d'accord, plutôt en
      désaccord, plutôt pas d'accord, ni d'accord ni pas d'accord, ni d'accord ni en désaccord,
      neutre, plutôt d'accord, d'accord, tout à fait d'accord;
    pas du tout satisfait, très insatisfait, insatisfait, pas satisfait, peu satisfait, plutôt
      insatisfait, ni satisfait ni insatisfait, neutre, plutôt satisfait, satisfait, très
      satisfait;
    jamais, presque jamais, rarement, occasionnellement, quelquefois, parfois, de temps en temps,
      souvent, très souvent, presque toujours, toujours;
    très mauvais, mauvais, assez mauvais, moyen, passable, assez bon, bon, très bon, excellent;
    pas du tout, très peu, un peu, peu, moyennement, assez, plutôt, beaucoup, très, énormément,
      tout à fait;
    très faible, faible, bas, moyen, moyenne, haut, élevé, élevée, très élevé, très élevée;
    totalmente en desacuerdo, muy en desacuerdo, en desacuerdo, algo en desacuerdo, ni de acuerdo
      ni en desacuerdo, neutral, indiferente, algo de acuerdo, de acuerdo, muy de acuerdo,
      totalmente de acuerdo;
    nada satisfecho, muy insatisfecho, insatisfecho, poco satisfecho, algo insatisfecho, ni
      satisfecho ni insatisfecho, neutral, algo satisfecho, satisfecho, muy satisfecho;
    nunca, casi nunca, rara vez, raramente, ocasionalmente, a veces, algunas veces, a menudo, con
      frecuencia, frecuentemente, muchas veces, muy a menudo, casi siempre, siempre;
    muy malo, malo, regular, bueno, muy bueno, excelente;
    nada, muy poco, poco, algo, regular, bastante, mucho, muchísimo;
    muy bajo, bajo, medio, alto, muy alto;
    per niente d'accordo, completamente in disaccordo, in disaccordo, poco d'accordo, né d'accordo
      né in disaccordo, neutrale, abbastanza d'accordo, d'accordo, molto d'accordo, completamente
      d'accordo;
    per niente, per nulla, poco, abbastanza, molto, moltissimo;
    mai, quasi mai, raramente, qualche volta, a volte, talvolta, spesso, molto spesso, quasi
      sempre, sempre;
    pessimo, scarso, insufficiente, sufficiente, discreto, buono, molto buono, ottimo, eccellente;
    discordo totalmente, discordo, discordo parcialmente, nem concordo nem discordo, não concordo
      nem discordo, neutro, indiferente, concordo parcialmente, concordo, concordo totalmente;
    nunca, quase nunca, raramente, ocasionalmente, às vezes, algumas vezes, frequentemente, muitas
      vezes, quase sempre, sempre;
    muito ruim, péssimo, ruim, regular, bom, muito bom, ótimo;
    helemaal mee oneens, helemaal oneens, zeer mee oneens, mee oneens, oneens, beetje mee oneens,
      niet mee eens/niet mee oneens, niet eens/niet oneens, neutraal, beetje mee eens, mee eens,
      eens, zeer mee eens, helemaal mee eens, helemaal eens;
    zeer ontevreden, ontevreden, neutraal, tevreden, zeer tevreden;
    nooit, bijna nooit, zelden, af en toe, soms, regelmatig, vaak, meestal, heel vaak, bijna
      altijd, altijd;
    とても不満, 不満, やや不満, どちらともいえない, 普通, やや満足, 満足, とても満足;
    全くそう思わない, そう思わない, あまりそう思わない, どちらともいえない,
      ややそう思う, そう思う, とてもそう思う;
    非常不满意, 不满意, 比较不满意, 一般, 比较满意, 满意, 非常满意;
    非常不同意, 不同意, 比较不同意, 一般, 中立, 比较同意, 同意, 非常同意;
    zeer slecht, slecht, matig, redelijk, voldoende, goed, zeer goed, uitstekend;
    per niente soddisfatto, molto insoddisfatto, insoddisfatto, poco soddisfatto, né soddisfatto
      né insoddisfatto, neutrale, abbastanza soddisfatto, soddisfatto, molto soddisfatto;
    molto basso, basso, medio, alto, molto alto;
    muito insatisfeito, insatisfeito, pouco satisfeito, nem satisfeito nem insatisfeito, neutro,
      indiferente, satisfeito, muito satisfeito;
    muito baixo, baixo, médio, alto, muito alto;
    zeer laag, laag, gemiddeld, middel, hoog, zeer hoog;
    mycket missnöjd, missnöjd, ganska missnöjd, varken eller, varken nöjd eller missnöjd, neutral,
      ganska nöjd, nöjd, mycket nöjd;
    instämmer inte alls, instämmer inte, instämmer delvis inte, varken eller, neutral, instämmer
      delvis, instämmer, instämmer helt;
    aldrig, nästan aldrig, sällan, ibland, ofta, mycket ofta, nästan alltid, alltid;
    aldrig, næsten aldrig, sjældent, nogle gange, ofte, meget ofte, næsten altid, altid;
    mycket dålig, dålig, varken bra eller dålig, okej, bra, mycket bra;
    mycket låg, låg, medel, hög, mycket hög;
    meget utilfreds, utilfreds, hverken eller, tilfreds, meget tilfreds;
    nigdy, rzadko, czasami, czasem, często, bardzo często, zawsze;
    zdecydowanie nie, raczej nie, trudno powiedzieć, raczej tak, zdecydowanie tak;
    bardzo niski, niski, średni, wysoki, bardzo wysoki; muy baja, baja, media, alta, muy alta;
    molto bassa, bassa, media, alta, molto alta; muito baixa, baixa, média, alta, muito alta;
    faible, modérée, moyenne, haute, élevée; klein, mittel, groß, sehr groß;
    petit, moyen, grand, très grand; pequeño, mediano, grande; piccolo, medio, grande;
    liten, mellan, stor; klein, middel, groot;
    leve, moderado, moderada, grave, severo, severa, crítico, crítica; lieve, moderato, grave;
    çok kötü, kötü, orta, iyi, çok iyi, mükemmel; çok düşük, düşük, orta, yüksek, çok yüksek;
    hiç, nadiren, bazen, sık sık, her zaman;
    hiç memnun değilim, memnun değilim, kararsızım, memnunum, çok memnunum;
    licht, matig, ernstig, zeer ernstig; lätt, måttlig, svår
""")
"""In twelve languages beside English."""
_SCALES = (*_CYCLES, *(_towards(*poles) for poles in _POLES), *_ENGLISH, *_LOCAL)
_NO_ANSWER = items("""
    refused, refusal, don't know, do not know, dk, no answer, not stated, not answered, unknown,
    prefer not to say, prefer not to answer, rather not say, declined, not applicable, n/a,
    keine angabe, k.a., weiß nicht, verweigert, entfällt, sans réponse, non réponse, ne sait
    pas, non renseigné, no sabe, no contesta, no responde, ns/nc, no aplica, non so, non
    risponde, non sa, não sabe, não respondeu, não informado, não se aplica, weet niet, geen
    antwoord, onbekend, vet ej, vet inte, ej svar, ved ikke, nie wiem, brak odpowiedzi
""")
_LEAST = 3  # So many words make a scale; two of them may mean something else
_CASES: tuple[Callable[[str], str], ...] = (str.lower, str.upper, str.capitalize)
_STEPS = items("""
    grade, level, stage, class, year, step, phase, tier, band, rank, quartile, quintile, decile, q,
    quarter, score, group age, age, wave, round, th, week, month, day, visit, cycle, kw, woche,
    monat, tag, stufe, klasse, niveau, semaine, mois, jour, classe, nivel, semana, mes, grado, fase,
    livello, vecka, nivå
""")
_NUMBER = r"[-+]?\d[\d,]*(?:\.\d+)?"
_BELOW = re.compile(
    r"^(<=?|≤|under|below|less than|up to|at most|fewer than|younger than|before"
    r"|unter|bis|weniger als|höchstens|moins de|jusqu'à|menos de|hasta|meno di|fino a|até"
    r"|(?:minder dan|jonger dan|hoogstens|abaixo de|mindre än|yngre än|mindre end)\b"
    r"|(?:poniżej|mniej niż)\b)",
    re.I,
)
_ABOVE = re.compile(
    r"^(>=?|≥|over|above|more than|at least|older than|after"
    r"|über|ab|mehr als|mindestens|plus de|más de|desde|più di|oltre"
    r"|(?:meer dan|ouder dan|minstens|mais de|acima de|mer än|äldre än|mere end)\b"
    r"|(?:powyżej|więcej niż)\b)",
    re.I,
)
_WITHIN = re.compile(
    r"\b(and|or) (under|less|fewer|below|younger)\b"
    r"|\b(oder|of) (weniger|minder)\b|\bou m(oins|enos)\b|\bo menos\b|\bo meno\b|以下|以内|未满|未満"
)
_BEYOND = re.compile(
    r"(\+|以上|超|\b(and|or) (over|more|above|older|greater|up)\b|\bplus\b"
    r"|\b(und|oder) (mehr|älter|darüber)\b|\b(y|o) más\b|\be (più|oltre)\b"
    r"|\b(of|ou|en) (meer|ouder|mais)\b|\b(och|eller) (mer|äldre|över)\b|\bi więcej\b)",
    re.I,
)
_ROMAN = re.compile(r"(?:([a-z]+)\s)?([ivx]+)([a-c]?)")
_MONTH = re.compile(r"([a-z]{3,9})\.?[-\s/]*(\d\d|(?:19|20)\d\d)")
_PERIOD = re.compile(
    r"(19|20)\d\d([-/.]|[-/. ]?[a-z]{1,2}[-. ]?)\d{1,2}|([a-z]{1,2}[-. ]?)?\d{1,2}[-/. ](19|20)\d\d"
)
_SHORT_MONTHS = {month[:3]: at for at, month in enumerate(_CYCLES[2], 1)}
_LABELLED = re.compile(r"(\d+)(?:\s*[-–=:.)(]\s*\D.*)?")


def whole_list(values: Iterable[str]) -> tuple[str, ...] | None:
    """The list that two or more values are of, in their spelling and its order; None of no list."""
    texts = set(values)
    if len(texts) < 2:
        return None
    if len(texts) >= 5 and texts <= set(_STATES):
        return tuple(sorted(_STATES))
    for listed in _LISTS:
        for case in _CASES:
            spelled = tuple(map(case, listed))
            # A weekday or two may be anything; most of them are not.
            if texts <= set(spelled) and 2 * len(texts) > len(spelled):
                return spelled
    return None


def in_order(values: Sequence[str], *, graded: bool = False) -> tuple[str, ...] | None:
    """The values in the order that their texts say; None where they say none.

    Brackets and numbers with a unit ("[0-10)", "<18", "10+ years"), scales of words ("low", "medium",
    "high"), weekdays, months and quarters. `graded` says that letters are grades.
    """
    if len(values) < 2:
        return None
    orders = (_by_scale, _by_month, _by_period, _by_length, _by_number, _by_label, _by_roman)
    signs = {value[-1:] in ("+", "-") for value in values}  # of blood groups all have one
    for order in (*orders, *([_by_letter] if graded or len(signs) > 1 else [])):
        if (places := order(values)) is not None:
            return tuple(value for _, value in sorted(zip(places, values, strict=True)))
    return None


def beside_order(values: Sequence[str]) -> str | None:
    """The one value that is no answer, and so has no place in an order: "Refused"; None of more."""
    found = [v for v in values if v.strip().lower().replace("’", "'") in _NO_ANSWER]
    return found[0] if len(found) == 1 else None


_Places = Sequence[Any] | None
"""Where each value stands; None where they are in no such order."""


def _by_scale(values: Sequence[str]) -> _Places:
    lower = [value.strip(" .").lower().replace("i\u0307", "i") for value in values]  # of İ
    plain = [text.replace("’", "'").partition(", ")[0] for text in lower]
    texts = [re.sub(r"[\s_-]+", " ", text) for text in plain]
    if len(set(texts)) < max(len(values), _LEAST):
        return None
    for words in (texts, _without_the_last(texts)):
        for scale in _SCALES:
            if words and set(words) <= set(scale):
                return [scale.index(word) for word in words]
    return None


def _without_the_last(texts: Sequence[str]) -> list[str]:
    """The texts without the word that all end with: "important" of "very important"; [] if none is."""
    firsts, _, lasts = zip(*(text.rpartition(" ") for text in texts), strict=True)
    return list(firsts) if len(set(lasts)) == 1 and all(firsts) else []


def _by_month(values: Sequence[str]) -> _Places:
    """Months of years: "Dec-08", "Jan 2009"; of two digits, the years from 1969 on."""
    found = [_MONTH.fullmatch(value.strip().lower()) for value in values]
    months = [match and _SHORT_MONTHS.get(match[1][:3]) for match in found]
    if not all(months):
        return None
    years = [int(match[2]) if match else 0 for match in found]
    years = [year + (1900 if 69 <= year < 100 else 2000 if year < 69 else 0) for year in years]
    return list(zip(years, months, strict=True))


def _by_period(values: Sequence[str]) -> _Places:
    """Parts of years, written alike: "2021-05", "2021Q3", "Q3 2021", "2021-W05", "2021/22"."""
    plain = [value.strip().lower() for value in values]
    alike = len({re.sub(r"\d", "", text) for text in plain}) == 1
    if not alike or not all(map(_PERIOD.fullmatch, plain)):
        return None
    return [sorted(map(int, re.findall(r"\d+", text)), reverse=True) for text in plain]


def _by_length(values: Sequence[str]) -> _Places:
    """One sign again and again: "★", "★★", "★★★"; "$", "$$", "$$$"."""
    plain = [value.strip() for value in values]
    same = len(set("".join(plain))) == 1 and not plain[0][0].isalnum()
    return list(map(len, values)) if same and len(values) >= _LEAST else None


def _by_number(values: Sequence[str]) -> _Places:
    """By the first number of each, where all are brackets, or numbers of one unit."""
    parsed = [_placed(value) for value in values]
    known = [place for place in parsed if place is not None]
    if len(known) < len(values):
        return None
    places = [place for place, _ in known]
    frames = {frame for _, frame in known if frame is not None}
    brackets = len(known) > sum(frame is not None for _, frame in known)
    if len(set(places)) < len(places) or len(frames) > 1:
        return None
    stepped = all(_is_step(frame) for frame in frames)
    if not (brackets or stepped) or (frames and not stepped and frames != {("", "")}):
        return None
    return places


def _by_label(values: Sequence[str]) -> _Places:
    """A scale whose ends have names: "1 - very bad", "2", "3", "4", "5 - very good"."""
    places = [int(match[1]) for value in values if (match := _LABELLED.fullmatch(value.strip()))]
    plain = sum(value.strip().isdigit() for value in values)
    if len(places) < max(len(values), _LEAST) or not 0 < plain < len(values):
        return None
    in_a_row = sorted(places) == list(range(min(places), min(places) + len(places)))
    return places if in_a_row else None


def _by_roman(values: Sequence[str]) -> _Places:
    """Steps: "Stage I", "Stage IIa", "Stage IV"."""
    found = [match for value in values if (match := _ROMAN.fullmatch(value.strip().lower()))]
    before = {match[1] or "" for match in found}
    places = [(_roman(match[2]), match[3]) for match in found]
    if (
        len(set(places)) < max(len(values), _LEAST)
        or len(before) > 1
        or not before <= {"", *_STEPS}
    ):
        return None
    letters = before == {""} and all(len(value.strip()) == 1 for value in values)
    return None if letters or not all(number for number, _ in places) else places


def _roman(digits: str) -> int:
    """The number; 0 where it is written otherwise."""
    known = items("i, ii, iii, iv, v, vi, vii, viii, ix, x, xi, xii, xiii, xiv")
    return known.index(digits) + 1 if digits in known else 0


def _is_step(frame: tuple[str, str]) -> bool:
    """Whether the words around a number make it a place in an order: "2 years", "grade 3"."""
    before, after = frame
    unit = not before and bool(after) and after[0] not in "-/_"
    return unit or after[:1].isalpha() or (before in _STEPS and not after)


Place = tuple[tuple[float, int], tuple[str, str] | None]
"""Where a text stands, and, of a single number, the words around it."""


def _placed(text: str) -> Place | None:
    plain = re.sub(r"(?<=\d)[ .\u00a0\u202f](?=\d{3}(?!\d))", "", text.strip())  # of thousands
    spread = re.sub(
        r"(?<=[\dkKmM])\s*(-|–|~|～|〜|to|bis|à|tot|a|till|til)(\s+under|\s+unter|\s*<)?\s*(?=[\d$])",
        " ",
        plain,
    )
    numbers = re.findall(rf"({_NUMBER})([kKmM]\b)?", spread)
    if not 1 <= len(numbers) <= 2:
        return None
    digits, unit = numbers[0]
    least = float(digits.replace(",", "")) * {"": 1, "k": 1e3, "m": 1e6}[unit.lower()]
    if len(numbers) == 2:
        joined = re.search(
            r"\d\D{0,6}(-|–|[~～〜]|\b(?:to|bis|à|tot|a|till|til)\b|,|\.\.)\D{0,8}\d", plain
        ) or re.match(r"[\[(]", plain)
        return ((least, 0), None) if joined else None
    if _BELOW.match(plain) or _WITHIN.search(plain):
        return (least, -1), None
    if _ABOVE.match(plain) or _BEYOND.search(plain):
        return (least, 1), None
    before, after = re.split(_NUMBER, plain, maxsplit=1)
    unit = re.sub(r"(?<=[a-z])s$|st$|nd$|rd$|th$", "", after.strip().lower())
    unit = "th" if not unit and after.strip() else unit
    if before and before[-1].isalnum():  # GB500A is no amount of anything
        unit = ""
    return (least, 0), (before.strip().lower(), unit)


def _by_letter(values: Sequence[str]) -> _Places:
    """Grades: A, B, C, ... with or without a digit or a sign."""
    found = [re.fullmatch(r"([A-H][1-9]?|[1-9])([+-]?)", value) for value in values]
    places = [(match[1], "+ -".index(match[2] or " ")) for match in found if match]
    return places if len(places) >= max(len(values), _LEAST) else None
