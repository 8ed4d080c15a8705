"""What every synthetic row keeps: public rules, and places on a public mask.

Constraints never touch private counts. What a model draws is projected onto them, as post-processing.
"""

from understudy.constraints.geography import Geography, Places
from understudy.constraints.masks import Centres, Polygons, Raster
from understudy.constraints.predicate import Predicate
from understudy.constraints.rule import Rule
from understudy.constraints.rules import Rules

__all__ = ["Centres", "Geography", "Places", "Polygons", "Predicate", "Raster", "Rule", "Rules"]
