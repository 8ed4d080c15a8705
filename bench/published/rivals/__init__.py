"""Scripts that run other people's libraries, each in an environment that has nothing else.

A script gets the path of a job, JSON with: `codes` (a NumPy file, rows × columns, integers from 0),
`names` and `shape` (the public domain), `cliques` (the workload), `epsilon`, `delta`, `method`,
`options`, and `out`, where it writes the codes of as many synthetic rows. On its last line it prints
a JSON object with the versions that it used. They may import nothing of understudy.
"""
