"""How far a piece of work is, in words."""

import pytest

from understudy.progress import STAGES, Progress, silent


@pytest.mark.parametrize(
    ("progress", "words"),
    [
        (Progress("reading", 0, 1), STAGES["reading"]),
        (Progress("playing", 2, 9, "loss 0.3"), f"{STAGES['playing']}, loss 0.3"),
        (Progress("shadow releases", 1, 4), "shadow releases"),
    ],
)
def test_a_stage_has_words_and_perhaps_a_note(progress, words):
    assert progress.words == words
    assert silent(progress) is None
