"""What every synthetic row keeps: public rules, and places on a public mask.

Constraints never touch private counts. What a model draws is projected onto them, as post-processing.
"""

from understudy.constraints.predicate import Predicate
from understudy.constraints.rule import Rule

__all__ = ["Predicate", "Rule"]
