"""What the name of a column says about it. Names are public, and so is all that follows from them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from understudy.draft.lists import word_set

_UPPER, _LOWER = "A-ZÀ-ÖØ-Þ", "a-zß-öø-ÿ"
_WORD = re.compile(rf"[{_UPPER}]+(?![{_LOWER}])|[{_UPPER}]?[{_LOWER}]+|[^\W\d_]+|[0-9]+")
_NUMBERED = word_set("no nr nbr num number nummer numero número numéro ref reference index")
_FIRST_NUMBERED = word_set("numero número numéro matricule matricula matrícula folio cédula")
"""Where whose number it is comes behind: `numéro de patient`, `matrícula del alumno`."""
_ROLES = word_set("""
    interviewer officer agent teacher nurse judge surgeon coach attending manager supervisor director
    actor artist writer author host seller buyer sender recipient inspector handler assignee adjuster
    investigator insured broker realtor counselor advisor caseworker landlord tenant
    sachbearbeiter sachbearbeiterin lehrer lehrerin fahrer fahrerin betreuer betreuerin berater
    beraterin leiter leiterin arzt ärztin makler prüfer vermieter mieter autor autorin
    enseignant enseignante professeur médecin infirmier chauffeur conducteur courtier conseiller
    conseillère responsable auteur assuré locataire inspecteur gestionnaire
    profesor profesora maestro maestra médico médica conductor vendedor asesor corredor inquilino
    asegurado investigador facultativo colegiado kurye sürücü öğretmen doktor
    insegnante docente medico autista conducente operatore venditore autore assicurato
    professor motorista corretor operador segurado inspetor
    leraar docent chauffeur verzekerde huurder behandelaar makelaar auteur
    förare lärare läkare handläggare författare kontrollant mäklare chaufför
    clerk boss mentor tutor observer referee captain pilot cashier courier dispatcher
    上司 担当 負責人 负责人 经理 医生 医師 医师 教师 担当者 司机
""")
"""Who somebody is to the others in a row: also the last part of a longer word, `Klassenlehrer`."""
_COMPOUND = re.compile(
    r"\w{3,}(lehrer|fahrer|berater|betreuer|leiter|arzt|bearbeiter|makler|lärare|läkare|förare)(in)?"
)
_BY = word_set("by von par por da door av przez")
_DONE = ("ed", "en", "t", "é", "is", "i", "do", "to", "d")
"""How participles end: `edited_by`, `saisi par`, `erstellt von`, `creado por`."""
_COUNTED = word_set("n no num number count per is has any avg mean max min sum total")
"""Beside one of these a role is counted, or asked about."""
_PERSONS = _ROLES | word_set("""
    patient pat person people subject subj participant respondent citizen customer cust client
    user member employee emp staff student pupil driver doctor physician provider owner borrower
    applicant contact passenger household hh family bene beneficiary prvdr physn
    schüler schülerin studierende teilnehmer teilnehmerin bewohner versicherte versicherter proband
    élève étudiant participante alumno estudiante
    kunde kunden patienten personal mitarbeiter mitglied klient klienten cliente paciente empleado
    usuario alumna trabajador socio afiliado oficial usuário aluno funcionário utente dipendente
    studente abbonato tesserato utilisateur abonné adhérent nutzer bürger
    usager salarié matricule matricula matrícula legajo
    begünstigter beguenstigter auftraggeber empfänger empfaenger kontoinhaber payee payer
""")
_WHO = _PERSONS | word_set("""
    case record rec file chart study sample
    account acct card policy contract claim invoice order booking loan ticket transaction trans
    txn trip visit encounter stay admission session event device vehicle machine meter serial
    parcel registration reg licence license passport security insurance tax item product row line
    document doc application house property school hospital hosp store shop site clinic station
    bike car taxi truck bus scooter vessel sensor node animal farm
    company sequence certificate npi clm facility tail flight fl
    bestell bestellung auftrag rechnung vertrag konto fall akte artikel versicherung beleg
    commande facture contrat compte dossier pedido factura contrato cuenta expediente
""")
_ALONE = _PERSONS - word_set("people household hh family owner contact staff personal") | word_set(
    "no nr nbr"
)
"""Words that tell rows apart where they are the whole name; the others may be counts."""
_PERSONAL = word_set("""
    ssn nin mrn nhs npi passport plate placas plaka targa kennzeichen badge login username userid
    cpr bsn dni nif nir cpf pesel personnummer fodselsnummer aadhaar curp rfc rut cédula imei iban
""")
"""Those of which each is one person's."""
_IDS = _PERSONAL | word_set("""
    id ids idnumber idno idnr idnum matrikelnummer uid pid hhid uuid guid oid vin isbn key pk
    identifier hash token barcode seqn serialno rowid caseid nickname handle pan ean gtin
    matricule matricula matrícula legajo folio 编号 学号 工号 身份证号 病历号 番号
""")
_JOINED = re.compile(
    rf"^({'|'.join(sorted(_WHO, key=len, reverse=True))})s?(id|no|nr|nbr|num|key|nummer|number)$"
)
_CONTACTS = word_set("""
    email mail phone telephone tel mobile cell fax address street url website homepage ip twitter
    skype telefon handy adresse anschrift straße strasse téléphone courriel correo teléfono
    dirección 手机号 手机号码 手机 电话 电话号码 联系电话 電話番号 住址 地址 住所 邮箱
""")
_PEOPLES = _ROLES | word_set("""
    first last full middle maiden given family sur fore nick legal patient person customer client
    member employee student user owner doctor physician provider contact applicant passenger
    player driver father mother parent spouse holder cardholder npi prvdr
""")
_NAMES = word_set("""
    surname lastname firstname forename fullname middlename givenname fname lname initials
    signature imię nazwisko förnamn efternamn fornavn etternavn efternavn voorletters initialen
    nachname vorname familienname prénom prenom apellido apellidos cognome achternaam
    voornaam 姓名 氏名 名字 フリガナ ふりがな
""")
_ALL_NAMES = word_set("name names nombre nombres nom noms nome nomi naam namen imię namn navn")
"""Names of people or of things."""
_PROSE = word_set("""
    comment comments note notes remark remarks description desc text narrative feedback review
    message body abstract summary details memo verbatim
    bemerkung bemerkungen kommentar anmerkung beschreibung commentaire remarque comentario
    observaciones opmerking nota
""")
_CODES = word_set("""
    code codes type typ kind class category cat group status zip zipcode postcode postal plz fips
    naics sic soc isco icd icd9 icd10 diag diagnosis dx drg cpt ndc atc region district area
    county state country tract ward department dept division sector industry occupation branch
    unit channel disposition source method reason cause race ethnicity religion language marital
    gender sex nationality zone block id puma msa cbsa species brand model
    psu stratum strata cluster precinct beat
""")
_PLACES = word_set("coordinate coordinates koordinate easting northing")
_KINDS = word_set(
    "location zone region district category type class status country state county city genre airport"
)
"""What many people share, so that `LocationID` is a code and names nobody."""
_AMOUNTS = word_set("""
    amount amnt amt price cost costs income inc salary wage wages weight wgt wt balance bal
    revenue sales value total sum pay payment pymnt fee fees debt population pop count qty gain
    quantity sqft sqm size distance dist length height width volume depth age year yr score time
    timestamp date duration seconds loss minutes hours days weeks months years rate limit credit
    charge charges spend spent budget km miles mileage temperature temp speed pressure profit
    turnover assets deposit deposits gdp area lot earnings lat latitude lon lng long longitude
    steps calories votes views net power energy consumption usage level index measure reading
    capital epoch unix ts betrag preis summe gewicht montant prix importe
""")
_MOMENTS = word_set("at on ms millis secs modified updated created changed seen")
"""Last words of columns that say when: `last_modified`, `shipped_at`, `event_ms`."""
_GRADES = word_set("grade rating class tier band level score subgrade quality risk energy note")
_HIERARCHIES = (
    (word_set("icd diag diagnosis diagnoses dx atc drg cpt"), (3, 1)),
    (word_set("zip zipcode postcode postal plz"), (3, 1)),
    (word_set("naics sic soc isco nace isic"), (3, 2)),
    (word_set("fips"), (2,)),
)
"""Codes whose beginnings are coarser codes, and how long these are."""


@dataclass(frozen=True)
class Range:
    """Bounds that everybody knows: of ages, months, percentages, places on the globe."""

    lower: int
    upper: int

    def holds(self, low: float, high: float) -> bool:
        """Whether values from `low` to `high` lie inside."""
        return self.lower <= low and high <= self.upper


_YEARS = Range(1900, 2099)
_LATITUDE = word_set("lat latitude")
_LONGITUDE = word_set("lon lng long longitude")
_PERCENT = word_set("percent percentage pct perc")
_RANGES = (
    (word_set("age ages alter âge edad età idade leeftijd 年齢 年龄"), Range(0, 120)),
    (word_set("month mon mth mnth monat mois mes mese mês maand 月"), Range(1, 12)),
    ({"weekday", "dow", "dayofweek"}, Range(0, 7)),
    ({"quarter", "qtr"}, Range(1, 4)),
    ({"day", "dom"}, Range(1, 31)),
    ({"week", "weekno"}, Range(1, 53)),
    ({"hour", "hr"}, Range(0, 23)),
    ({"minute", "second"}, Range(0, 59)),
    (_PERCENT, Range(0, 1)),
    (_PERCENT, Range(0, 100)),
    (_LATITUDE, Range(-90, 90)),
    (_LONGITUDE, Range(-180, 180)),
    ({"share", "fraction", "proportion", "probability", "prob"}, Range(0, 1)),
)


@dataclass(frozen=True)
class Name:
    """The words of a column's name, and what they say."""

    text: str

    @property
    def words(self) -> list[str]:
        """In lower case: "patientID", "PATIENT_ID" and "patient-id" are the same two words."""
        return [word.lower() for word in _WORD.findall(self.text)]

    @property
    def identifies(self) -> bool:
        """Whether it names single people or things: `patient_nbr`, `orderId`, `SSN`."""
        words = self.words
        if not words:
            return False
        who = _WHO | _IDS
        numbered = words[-1] in _NUMBERED and len(words) > 1 and words[-2] in who
        numbered |= words[0] in _FIRST_NUMBERED and len(words) > 1 and words[-1] in who
        numbered |= self.text.strip()[:2].lower() in ("nº", "n°") and words[-1] in who
        numbered |= words[-1].endswith(("番号", "编号", "号码")) and words[-1] != "郵便番号"
        numbered |= words[0] == "id" and _AMOUNTS.isdisjoint(words[-1:])
        joined = _JOINED.match(words[-1]) is not None
        alone = len(words) == 1 and words[0] in _ALONE
        kind = words[-1] == "id" and words[-2:-1] != [] and words[-2] in _KINDS
        return (words[-1] in _IDS and not kind) or numbered or joined or alone

    @property
    def of_a_person(self) -> bool:
        """Whether it speaks of a person or a household, rather than of a visit or an order."""
        return bool((_PERSONS | _PERSONAL).intersection(self.words))

    @property
    def role(self) -> bool:
        """Whether its texts say who somebody is: `program_officer`, `Klassenlehrer`, `edited_by`."""
        words = self.words
        last = words[-1] if words else ""
        role = last in _ROLES or _COMPOUND.fullmatch(last) is not None
        role |= last in _BY and words[-2:-1] != [] and words[-2].endswith(_DONE)
        return role and (_AMOUNTS | _COUNTED).isdisjoint(words)

    @property
    def reaches(self) -> bool:
        """Whether it says how people can be reached, or where they live."""
        words = self.words
        return bool(_CONTACTS.intersection(words)) or words[-2:] == ["e", "mail"]

    @property
    def of_people(self) -> bool:
        """Whether it holds the names of people; that of a product or a town is none."""
        return self.text.strip().lower() in _ALL_NAMES or self.of_persons

    @property
    def of_persons(self) -> bool:
        """Whether it says so itself; a `name` alone may be that of a thing."""
        words = self.words
        named = not _ALL_NAMES.isdisjoint(words) and not _PEOPLES.isdisjoint(words)
        return named or not _NAMES.isdisjoint(words)

    @property
    def prose(self) -> bool:
        """Whether it announces free text."""
        return bool(_PROSE.intersection(self.words[-1:]))

    @property
    def coded(self) -> bool:
        """Whether its numbers are codes, which have no order and no mean."""
        words = self.words
        if not _PLACES.isdisjoint(words):
            return False
        named = bool(_CODES.intersection(words)) or self.text.lower().endswith(("code", "type"))
        return (named and not _AMOUNTS.intersection(words[-1:])) or self.identifies

    @property
    def of_codes(self) -> bool:
        """Whether codes are all that it speaks of, even those with a point: `census_tract`, `icd9`."""
        return bool(self.prefixes) or not (_CODES - _AMOUNTS).isdisjoint(self.words[-1:])

    @property
    def graded(self) -> bool:
        """Whether letters in it have an order."""
        return bool(_GRADES.intersection(self.words))

    @property
    def prefixes(self) -> tuple[int, ...]:
        """Lengths at which the beginning of a value is a coarser value; () where it is none."""
        words = {re.sub(r"\d+$", "", word) for word in self.words}
        return next((at for names, at in _HIERARCHIES if names & words), ())

    @property
    def amount(self) -> bool:
        """Whether it is measured or counted, so that even values that never repeat name nobody.

        The last word says what it is: `credit card` is a card, and no amount.
        """
        if self.words[-1:] and self.words[-1] in _WHO - _PERSONS - _AMOUNTS:
            return False
        if self.words[-1:] and self.words[-1] in _MOMENTS:
            return True
        if not _PLACES.isdisjoint(self.words):
            return True
        endings = ("wgt", "amt", "amount", "price", "cost", "income", "salary", "balance")
        return bool(_AMOUNTS.intersection(self.words)) or self.text.lower().endswith(endings)

    @property
    def degrees(self) -> bool:
        """Whether it holds places on the globe."""
        return bool((_LATITUDE | _LONGITUDE).intersection(self.words))

    @property
    def year(self) -> bool:
        """Whether it holds years of the calendar."""
        return not word_set("year yr jahr année año anno ano jaar 年").isdisjoint(self.words)

    def natural(self, low: float, high: float) -> Range | None:
        """Bounds that are public knowledge, if values from `low` to `high` lie inside."""
        words = self.words
        if self.year and _YEARS.holds(low, high):
            return _YEARS
        if "day" in words and "week" in words and low >= 0 and high <= 7:
            return Range(0, 7)
        if "hours" in words and "week" in words and low >= 0 and high <= 168:
            return Range(0, 168)
        since = {"since", "until", "in", "per", "last", "past", "number", "num", "count", "n"}
        for known, range_ in _RANGES:
            if known.intersection(words) and range_.holds(low, high):
                exact = range_.upper > 60 or range_.upper <= 1 or not since.intersection(words)
                if exact:
                    return range_
        return None
