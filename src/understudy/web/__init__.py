"""The page for a team: a thin shell on the library, served from this machine.

    workspace   the folder that holds tables, jobs, releases and the ledger
    people      who may log in: a token, named users with hashed passwords; sessions and their end;
                wrong passwords, counted before they are looked at
    guard       what every request passes: the host, the session, the role, headers
    errors      refusals of the page's own, and how every error reads there
    uploads     files that stream to disk and stop at a limit
    imports     releases from elsewhere, unpacked and checked
    workers     processes for what takes long or may crash on a bad file: drafts, imports, plans
    confined    a call in a process of its own, with limits
    jobs        releases and audits as processes of their own, that outlive the server
    job         what such a process runs
    storage     releases that are read again and again, kept in memory
    site, pages the pages themselves

Nothing here knows how to open a `Sensitive`, and no response or line of a log holds a path or a value
of a private row, but for one page: the draft of a schema, which a custodian reads to confirm it.
"""
