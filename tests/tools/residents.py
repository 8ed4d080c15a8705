"""A table about which something is known: its columns, and what is impossible in it."""

COLUMNS = """
[understudy]
version = 1

[[column]]
name = "age"
type = "integer"
lower = 0
upper = 99
edges = [0, 16, 30, 65, 99]

[[column]]
name = "marital status"
type = "category"
values = ["never", "married", "widowed"]
nullable = true

[[column]]
name = "zip"
type = "category"
values = ["89073", "53111", "50667"]
other = "x"

[[column]]
name = "city"
type = "category"
values = ["Ulm", "Bonn", "Köln"]

[[column]]
name = "retired"
type = "boolean"
"""
CHILDREN = """age < 16 implies "marital status" = 'never'"""
PLACES = {"89073": "Ulm", "53111": "Bonn", "50667": "Köln"}
MAPPING = """
[[rule]]
says = "zip determines city"
mapping = {"89073" = "Ulm", "53111" = "Bonn", 50667 = "Köln"}
"""
