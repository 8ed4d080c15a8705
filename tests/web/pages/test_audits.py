"""Audits, from the form to the verdict."""

from tests.web.conftest import put_bundle


def test_an_audit_of_a_release(custodian, bundle):
    put_bundle(custodian, bundle)
    for form, said in (
        ({"release": "none"}, "no such release"),
        ({"release": "small", "runs": "99999999"}, "at most"),
        ({"release": "small", "runs": "x"}, "whole number"),
    ):
        response = custodian.post("/audits", **form)
        assert response.status_code in (404, 422)
        assert said in custodian.told(response)
    done = custodian.post("/audits", release="small", runs="6", canaries="4")
    assert done.status_code == 200
    job = custodian.site.jobs.all()[0]
    assert job.state in ("finished", "failed"), job.progress
    if job.state == "finished":
        shown = custodian.client.get(f"/audits/{job.id}").text
        assert "can never prove one" in shown
        assert "<h1>Audit of small</h1>" in shown
        assert ">Audit of small</a>" in custodian.client.get("/audits").text
    else:
        assert "runs" in job.progress["message"]
