"""Releases that are kept in memory until their files change."""

from tests.web.conftest import Page, TestClient, app_here, zipped
from understudy.web import storage


def test_an_imported_release_is_never_checked_by_the_server_itself(custodian, bundle, monkeypatch):
    """Its import was, in a process with limits; what that found outlives the server."""
    checked = []

    def counted(folder):
        checked.append(folder.name)
        return verify(folder)

    verify = storage.verify
    monkeypatch.setattr(storage, "verify", counted)
    assert custodian.upload("small.zip", zipped(bundle), to="/import").status_code == 200
    found = custodian.client.get("/releases/small/verify").text
    with TestClient(app_here(custodian.folder)) as client:  # another server
        again = Page(client, custodian.folder).enter()
        assert again.client.get("/releases/small/verify").text.count("<li") == found.count("<li")
        assert again.site.storage.verification("small") == verify(bundle)
        assert not checked
        rows = again.folder / "releases" / "small" / "synthetic.parquet"
        rows.write_bytes(rows.read_bytes()[:-1])
        assert not again.site.storage.verification("small").passed  # another release by now
        assert checked == ["small"]
        rows.with_name("report.html").write_text("<script>")
        assert not again.site.storage.verification("small").passed
        assert checked == ["small", "small"]
