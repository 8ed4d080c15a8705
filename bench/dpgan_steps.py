"""What a private critic step costs beside the same step without privacy, in one run.

Batch 1024, a critic of 180-256-256-2. All take the same features and made-up rows, and end with
a step of Adam:

    without     as `train_without_privacy` does it: the mean gradient of the real rows as a vector,
                then a step with it and the made-up rows
    in one      the same compiled into one function, as fast as it gets
    private     the vector from factors: ghost norms, clipping, the exact sum on integers, noise from
                cryptographic words; the step as before
    vmap        the vector by jax-privacy's clipped gradient (microbatches of 16), without noise

Times are medians over steps: of the clock, and of the processor, which is what to look at where the
machine is busy. For both to be told apart from waiting set OPENBLAS_NUM_THREADS=1.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from numpy.typing import NDArray

from understudy.nets.gan import Critic, Layers, Loss
from understudy.privacy.noise import GRAIN, OpenDPNoise, rounded
from understudy.privacy.questions.gradient import UNIT, Groups, clipped_sums

SIZES, BATCH = (180, 256, 256, 2), 1024
TURNS, TURNS_OF_VMAP = 60, 5
LOSS, CRITIC, ADAM = Loss.SATURATING_NOT, Critic(SIZES), optax.adam(1e-3)


class Looked:
    """A network whose rows are numbers of rows of features."""

    layers = CRITIC.layers
    slots = BATCH

    def __init__(self, weights: Layers, features: NDArray[np.float32]) -> None:
        self._weights, self._features = weights, features

    def factors(self, rows: NDArray[Any]) -> Sequence[tuple[NDArray[Any], NDArray[Any]]]:
        """(a, δ) of every layer."""
        features = self._features[rows[:, 0]]
        inputs, deltas = _factors(self._weights, features)
        pairs = zip((features, *inputs), deltas, strict=True)
        return [(np.asarray(a), np.asarray(d)) for a, d in pairs]


@jax.jit
def _factors(weights: Layers, features: Any) -> Any:
    made = CRITIC.factors(weights, features, LOSS)
    return [a for a, _ in made[1:]], [d for _, d in made]


def _real(weights: Layers, features: Any) -> Any:
    return LOSS.real(CRITIC.scores(weights, features)).sum()


def _fake(weights: Layers, features: Any) -> Any:
    return LOSS.fake(CRITIC.scores(weights, features)).sum()


@jax.jit
def _public(weights: Layers, real: Any) -> Any:
    return CRITIC.flat(jax.grad(lambda w: _real(w, real) / BATCH)(weights))


@jax.jit
def _in_one(weights: Layers, state: Any, real: Any, fake: Any) -> Any:
    gradient = jax.grad(lambda w: (_real(w, real) + _fake(w, fake)) / BATCH)(weights)
    return _stepped(weights, state, gradient)


def _stepped(weights: Layers, state: Any, gradient: Any) -> Any:
    updates, state = ADAM.update(gradient, state)
    return optax.apply_updates(weights, updates), state


@jax.jit
def _after(weights: Layers, state: Any, flat: Any, fake: Any) -> Any:
    gradient = jax.grad(lambda w: _fake(w, fake) / BATCH)(weights)
    return _stepped(weights, state, jax.tree.map(jnp.add, gradient, CRITIC.join(flat)))


def measure() -> str:
    """A table of milliseconds and ratios."""
    from importlib import import_module

    try:
        clipping: Any = import_module("jax_privacy.clipping")
    except ImportError:
        raise SystemExit("the comparison needs jax-privacy: pip install jax-privacy") from None
    rng = np.random.default_rng(0)
    real, fake = (rng.normal(size=(BATCH, SIZES[0])).astype(np.float32) for _ in range(2))
    weights = CRITIC.init(jax.random.key(0))
    state = ADAM.init(weights)
    noise, groups, rows = OpenDPNoise(), Groups((1.0,)), np.arange(BATCH)[:, None]
    clipped = jax.jit(
        clipping.clipped_grad(_real, l2_clip_norm=1.0, batch_argnums=1, microbatch_size=16)
    )

    def without() -> Any:
        return _after(weights, state, _public(weights, real), fake)

    def in_one() -> Any:
        return _in_one(weights, state, real, fake)

    def private() -> Any:
        sums, _ = clipped_sums(Looked(weights, real), rows, groups)
        noisy = rounded(noise, sums, 1.0 * UNIT).astype(np.float32) * (1.0 / GRAIN / BATCH)
        return _after(weights, state, noisy, fake)

    def by_rows() -> Any:
        found = clipped(weights, real)
        return _after(weights, state, CRITIC.flat(found) / BATCH, fake)

    ways: dict[str, Callable[[], Any]] = {
        "without": without, "in one": in_one, "private": private, "vmap": by_rows,
    }  # fmt: skip
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    # By turns, as the machine's speed wanders; vmap apart, as it fills every cache.
    for names, turns in ((("without", "in one", "private"), TURNS), (("vmap",), TURNS_OF_VMAP)):
        for turn in range(turns + 1):
            for name in names:
                start = time.perf_counter(), time.process_time()
                jax.block_until_ready(ways[name]())
                took = time.perf_counter() - start[0], time.process_time() - start[1]
                if turn:  # the first compiles
                    taken[name].append(took)
    middle = {name: 1000 * np.median(times, axis=0) for name, times in taken.items()}
    lines = [
        "| step | ms | CPU ms | CPU against without | CPU against vmap |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {name} | {wall:.1f} | {cpu:.1f} | {cpu / middle['without'][1]:.2f} | "
        f"{cpu / middle['vmap'][1]:.2f} |"
        for name, (wall, cpu) in middle.items()
    ]
    return "\n".join(lines) + "\n"
