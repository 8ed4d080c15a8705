"""What the stand-ins of `understudy.testing` do not: log the order of events, be large, leak."""

import numpy as np

from tests.exact_privacy import ChoosingNoise
from understudy.privacy.cost import Charge, Plan
from understudy.privacy.noise import Noise
from understudy.privacy.relation import Relation
from understudy.privacy.sensitive import Sensitive
from understudy.testing.stand_ins import StillNoise, StrictCharges


class FakeTables:
    """Exact counts given as one table over all columns, so that they may be large."""

    unit = None

    def __init__(self, table):
        self._table = np.asarray(table, dtype=np.int64)
        self.shape = self._table.shape

    def marginals(self, cliques):
        return Sensitive(tuple(self._marginal(clique) for clique in cliques))

    def sparse(self, cliques):
        flat = [self._marginal(clique).reshape(-1) for clique in cliques]
        return Sensitive(tuple((np.flatnonzero(each), each[each > 0]) for each in flat))

    def _marginal(self, clique):
        others = tuple(a for a in range(self._table.ndim) if a not in clique)
        return self._table.sum(axis=others)


class LoggedCharges(StrictCharges):
    """A reservation that is never used up; writes each charge into a log that noise may share."""

    def __init__(self, log=None, *, relation=Relation.ADD_REMOVE, **events):
        plan = Plan(tuple(Charge(name, event) for name, event in events.items()))
        super().__init__(plan, relation)
        self.log = [] if log is None else log

    def charge(self, purpose, event=None):
        self.log.append(("charge", purpose))
        return self.plan[purpose].event if event is None else event


class LoggedNoise(StillNoise):
    """No noise at all; writes into a log which law was asked for. A ledger takes it for private."""

    private = True

    def __init__(self, log=None):
        super().__init__()
        self.log = [] if log is None else log

    @property
    def values(self):
        return [values for _, values, _ in self.asked]

    def _record(self, kind, values, *parameters):
        assert np.asarray(values).dtype == np.int64
        self.log.append((kind, *parameters))

    def laplace(self, values, scale):
        self._record("laplace", values, scale)
        return super().laplace(values, scale)

    def gaussian(self, values, sigma):
        self._record("gaussian", values, sigma)
        return super().gaussian(values, sigma)

    def top_k(self, scores, scale, k):
        self._record("top_k", scores, scale, k)
        return super().top_k(scores, scale, k)


class LeakyNoise(Noise):
    """Fails, as a third-party sampler might, with its exact arguments in the message."""

    private = True

    def __init__(self, kind=RuntimeError):
        self._kind = kind

    def _fail(self, values, *_):
        raise self._kind(f"LEAK {np.asarray(values).tolist()}")

    laplace = gaussian = top_k = below = _fail


class HalfNoise(ChoosingNoise):
    """The broken twin of selection: half the scale that was charged."""

    def top_k(self, scores, scale, k):
        return super().top_k(scores, scale / 2, k)
