"""Stand-ins around a curator: tiny tables, charges and noise that write down what happens."""

import numpy as np

from understudy.privacy.cost import Charge, Plan
from understudy.privacy.sensitive import Sensitive
from understudy.testing.exact import ChoosingNoise


class FakeCounts:
    """Exact counts of a few rows of small integers."""

    def __init__(self, shape, rows, log=None):
        self.shape = tuple(shape)
        self._rows = tuple(rows)
        self._log = [] if log is None else log

    def rows(self):
        return Sensitive(len(self._rows))

    def marginals(self, cliques):
        return Sensitive(tuple(table_of(self._rows, self.shape, clique) for clique in cliques))


class FakeTables:
    """Exact counts given as one table over all columns, so that they may be large."""

    def __init__(self, table):
        self._table = np.asarray(table, dtype=np.int64)
        self.shape = self._table.shape

    def rows(self):
        return Sensitive(int(self._table.sum()))

    def marginals(self, cliques):
        axes = range(self._table.ndim)
        return Sensitive(
            tuple(
                self._table.sum(axis=tuple(a for a in axes if a not in clique))
                for clique in cliques
            )
        )


class FakeCharges:
    """A reservation that is never used up; writes down each charge."""

    def __init__(self, log=None, **events):
        self.plan = Plan(tuple(Charge(name, event) for name, event in events.items()))
        self.log = [] if log is None else log

    def charge(self, purpose, event=None):
        self.log.append(("charge", purpose))
        return self.plan[purpose].event if event is None else event


class StillNoise:
    """No noise at all; writes down which law was asked for, on which exact values."""

    private = True

    def __init__(self, log=None):
        self.log = [] if log is None else log
        self.values = []

    def _record(self, kind, values, *parameters):
        values = np.array(values)
        assert values.dtype == np.int64
        self.log.append((kind, *parameters))
        self.values.append(values)
        return values

    def laplace(self, values, scale):
        return self._record("laplace", values, scale)

    def gaussian(self, values, sigma):
        return self._record("gaussian", values, sigma)

    def top_k(self, scores, scale, k):
        scores = self._record("top_k", scores, scale, k)
        return tuple(int(i) for i in np.argsort(-scores, kind="stable")[:k])


class LeakyNoise:
    """Fails, as a third-party sampler might, with its exact arguments in the message."""

    private = True

    def _fail(self, values, *_):
        raise RuntimeError(f"LEAK {np.asarray(values).tolist()}")

    laplace = gaussian = top_k = _fail


class HalfNoise(ChoosingNoise):
    """The broken twin of selection: half the scale that was charged."""

    def top_k(self, scores, scale, k):
        return super().top_k(scores, scale / 2, k)


def table_of(rows, shape, clique):
    out = np.zeros(tuple(shape[i] for i in clique), dtype=np.int64)
    for row in rows:
        out[tuple(row[i] for i in clique)] += 1
    return out
