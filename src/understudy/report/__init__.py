"""A page about a release, for people: what is promised, how wrong a number can be, what not to do.

    from understudy import Release, report

    report.render(Release.load("patients.release"))   # the page, as text
    report.write("patients.release")                  # patients.release.html
    report.write("patients.release", about=report.About(owner="City of Exampleton"))
    report.save(release, "patients.release")          # a release with its report in it

The page is one file without scripts or network, made of released quantities alone.
"""

from understudy.report.page import NAME, About, render, save, write

__all__ = ["NAME", "About", "render", "save", "write"]
