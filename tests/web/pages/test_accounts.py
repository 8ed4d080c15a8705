"""The page of the ledger."""

from tests.web.conftest import FAST, SCHEMA, put_table
from understudy.wording import ADDS_UP, COUNTED


def test_the_ledger_shows_every_release_and_whether_the_chain_holds(custodian):
    import sqlite3

    put_table(custodian)
    custodian.post("/tables/people/releases", **FAST)
    text = custodian.client.get("/ledger").text
    assert "entries, hash chain intact" in text
    assert "people ε 1" in text
    db = sqlite3.connect(custodian.folder / "ledger.db")
    db.execute("DROP TRIGGER no_update")
    db.execute('UPDATE entries SET body = replace(body, \'"epsilon":"3"\', \'"epsilon":"30"\')')
    db.commit()
    db.close()
    assert "The chain is broken" in custodian.client.get("/ledger").text


def test_an_open_release_without_a_job_can_be_closed(custodian):
    from understudy.releases import prepare

    put_table(custodian)
    planned = prepare(SCHEMA, epsilon=1, method="gaussian")
    with custodian.site.workspace.ledger() as ledger:
        held = ledger.reserve(
            "people", planned.budget, planned.plan, relation=planned.design.relation
        )
        assert float(ledger.spent("people").epsilon) == 1
    assert "close it" in custodian.client.get("/ledger").text
    custodian.post(f"/ledger/{held.id}/settle")
    with custodian.site.workspace.ledger() as ledger:
        assert float(ledger.spent("people").epsilon) == 0
    assert custodian.post("/ledger/nothing/settle").status_code == 404


def test_the_ledger_says_what_shares_are_of_in_the_words_of_the_command_line(custodian):
    put_table(custodian, composition="zcdp")
    put_table(custodian, name="others", rows=300)
    text = custodian.client.get("/ledger").text
    assert f"left of ε = 3{COUNTED['zcdp']}</span>" in text
    assert f"R{ADDS_UP['zcdp'][1:]}." in text
    assert "left of ε = 3</span>" in text
    assert f"R{ADDS_UP['basic'][1:]}, up to ε = 3 and δ = 1e-8." in text
