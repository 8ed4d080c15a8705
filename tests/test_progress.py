"""How far a piece of work is, in words."""

import pytest

from understudy.progress import (
    COUNTING,
    FITTING,
    STAGES,
    Progress,
    forget,
    heed,
    silent,
    stop,
    undisturbed,
)


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
    assert progress.part == ""


@pytest.mark.parametrize(
    ("progress", "step", "part"),
    [
        (Progress("reading", 0, 1), "", ""),
        (Progress("playing", 2, 9), "round 3 of 9", ""),
        (Progress("playing", 9, 9), "all 9 rounds done", ""),
        (Progress("finding domains", 0, 4), "step 1 of 4", ""),
        (Progress(COUNTING, 30, 100), "step 31 of 100", "counted 30 % of the table"),
        (Progress(FITTING, 3, 0), "", "pass 3 of the fit"),
    ],
)
def test_steps_of_a_stage_and_parts_of_any(progress, step, part):
    assert (progress.step, progress.part) == (step, part)


def test_work_that_was_stopped_ends_at_its_next_step():
    class Stopped(KeyboardInterrupt):
        pass

    heed()
    with pytest.raises(Stopped):
        stop(Stopped)
    with pytest.raises(Stopped):
        heed()
    forget()
    heed()


def test_what_is_undisturbed_is_finished_before_the_work_stops():
    done = []

    def work():
        with undisturbed():
            with undisturbed():
                stop(KeyboardInterrupt)
                done.append("inner")
            done.append("outer")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["inner", "outer"]
    forget()
    with undisturbed():
        pass
