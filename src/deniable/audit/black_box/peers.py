"""Clients of other libraries as black boxes, used as their documentation says.

A peer makes a device, which is a function of the value. None of these libraries keeps a permanent
draw: what they call a longitudinal client draws both layers at every call, so a device of theirs
does, too.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.audit.black_box.empirical import CONFIDENCE, USUAL, AuditOptions, audit_source
from deniable.audit.black_box.encoding import Column
from deniable.audit.black_box.findings import Audit
from deniable.audit.black_box.sources import Decoder, of_devices
from deniable.errors import InvalidArgument, MissingExtra

Client = Callable[[int], Any]


@dataclass(frozen=True)
class Peer:
    """One mechanism of another library, and what it promises for one report."""

    library: str
    name: str
    epsilon: float
    client: Client
    decoder: Decoder | None = None
    #: What all reports of one answer promise together, where that is promised.
    in_all: float | None = None

    def audit(
        self,
        values: Sequence[int],
        *,
        reports: int = 1,
        n: int = USUAL,
        confidence: float = CONFIDENCE,
    ) -> Audit:
        """Audit one report, or some reports of each device against the promise for all."""
        promise = self.epsilon if reports == 1 else self.in_all
        if promise is None:
            raise InvalidArgument("reports", reports, f"1: {self.name} promises nothing for more")
        draw = of_devices(lambda: self.client, reports)
        options = AuditOptions(n, confidence, self.decoder)
        return audit_source(draw, values, promise, options, f"{self.library} {self.name}")


def peers(library: str, k: int, epsilon: float, values: Sequence[int]) -> list[Peer]:
    """All mechanisms of a library for k answers and an epsilon; ``values`` will be audited."""
    if library not in LIBRARIES:
        raise InvalidArgument("library", library, f"one of {', '.join(LIBRARIES)}")
    return LIBRARIES[library](k, float(epsilon), values)


def _load(package: str, *modules: str) -> list[Any]:
    try:
        return [importlib.import_module(f"{package}.{name}") for name in modules]
    except ImportError:
        raise MissingExtra(package, "bench") from None


def _multi_freq_ldpy(k: int, epsilon: float, values: Sequence[int]) -> list[Peer]:
    grr, ue, lh, ss, he = _load(
        "multi_freq_ldpy.pure_frequency_oracles", "GRR", "UE", "LH", "SS", "HE"
    )
    make = partial(Peer, "multi-freq-ldpy")
    cells = round(math.exp(epsilon)) + 1
    return [
        make("GRR", epsilon, lambda v: grr.GRR_Client(v, k, epsilon)),
        make("SUE", epsilon, lambda v: ue.UE_Client(v, k, epsilon, False)),
        make("OUE", epsilon, lambda v: ue.UE_Client(v, k, epsilon, True)),
        make("BLH", epsilon, lambda v: lh.LH_Client(v, k, epsilon, False), _xxhash(2, values)),
        make("OLH", epsilon, lambda v: lh.LH_Client(v, k, epsilon, True), _xxhash(cells, values)),
        make("SS, as returned", epsilon, lambda v: ss.SS_Client(v, k, epsilon)),
        make("SS, as a set", epsilon, lambda v: set(ss.SS_Client(v, k, epsilon).tolist())),
        make("HE", epsilon, lambda v: he.HE_Client(v, k, epsilon)),
        *_longitudinal(k, epsilon, values),
    ]


def _longitudinal(k: int, epsilon: float, values: Sequence[int]) -> list[Peer]:
    """Longitudinal clients with epsilon for one report, and twice that for all."""
    names = ("L_GRR", "L_SUE", "L_OUE", "L_SOUE", "L_OSUE")
    modules = _load("multi_freq_ldpy.long_freq_est", *names, "L_LH", "dBitFlipPM")
    both = 2 * epsilon, epsilon
    make = partial(Peer, "multi-freq-ldpy")
    found = [
        make(name.replace("_", "-"), epsilon, partial(_call, client, k, *both), None, both[0])
        for name, module in zip(names, modules, strict=False)
        for client in [getattr(module, f"{name}_Client")]
    ]
    hashed = partial(_call, modules[-2].L_LH_Client, k, *both, False)
    flip = partial(_call, modules[-1].dBitFlipPM_Client, k, k, k // 2, epsilon)
    return [
        *found,
        make("L-BLH", epsilon, hashed, _xxhash(2, values), both[0]),
        make(f"dBitFlipPM, {k // 2} bits", epsilon, flip, None, epsilon),
    ]


def _call(client: Callable[..., Any], *settings: Any) -> Any:
    """A client that takes the value first; partial gives it last."""
    *rest, value = settings
    return client(value, *rest)


def _xxhash(cells: int, values: Sequence[int]) -> Decoder:
    """Which values a report (cell, seed) of local hashing supports."""
    (xxhash,) = _load_top("xxhash")

    def read(column: Column) -> NDArray[Any]:
        return np.array(
            [
                [xxhash.xxh32(str(v), seed=int(seed)).intdigest() % cells == cell for v in values]
                for cell, seed in column
            ]
        ).astype(np.uint8)

    return Decoder(tuple(f"support of {v}" for v in values), read)


def _load_top(*modules: str) -> list[Any]:
    try:
        return [importlib.import_module(name) for name in modules]
    except ImportError as missing:
        raise MissingExtra(missing.name or modules[0], "bench") from None


def _pure_ldp(k: int, epsilon: float, values: Sequence[int]) -> list[Peer]:
    names = ("direct_encoding", "unary_encoding", "local_hashing", "histogram_encoding")
    de, ue, lh, he = _load("pure_ldp.frequency_oracles", *names)
    same: dict[str, Any] = {"index_mapper": lambda v: v}
    cells = round(math.exp(epsilon)) + 1
    make = partial(Peer, "pure-ldp")
    clients = {
        "DE": de.DEClient(epsilon, k, **same),
        "SUE": ue.UEClient(epsilon, k, use_oue=False, **same),
        "OUE": ue.UEClient(epsilon, k, use_oue=True, **same),
        "HE": he.HEClient(epsilon, k, **same),
    }
    olh = lh.LHClient(epsilon, k, use_olh=True, **same)
    return [
        *(make(name, epsilon, client.privatise) for name, client in clients.items()),
        make("OLH", epsilon, olh.privatise, _xxhash(cells, values)),
        *_pure_ldp_sketches(k, epsilon, same),
    ]


def _pure_ldp_sketches(k: int, epsilon: float, same: dict[str, Any]) -> list[Peer]:
    """Hadamard mechanisms, and Bloom filters and sketches over four plain hash functions."""
    hm, hr, rappor, cms = _load(
        "pure_ldp.frequency_oracles",
        "hadamard_mechanism",
        "hadamard_response",
        "rappor",
        "apple_cms",
    )
    make = partial(Peer, "pure-ldp")
    width, cohorts = 16, 4
    hashes = [partial(_hash, seed, width) for seed in range(cohorts)]
    half = 2 / (1 + math.exp(epsilon / 2))  # f of one hash function: epsilon = 2 ln((2 - f) / f)
    bloom = rappor.RAPPORClient(half, width, [[h] for h in hashes], cohorts, **same)
    hadamard = hm.HadamardMechClient(epsilon, k, 1, **same)
    found = [
        make("Hadamard mechanism", epsilon, lambda v: list(hadamard.privatise(v))),
        make("RAPPOR", epsilon, bloom.privatise),
        make("CMS", epsilon, cms.CMSClient(epsilon, hashes, width).privatise),
        make("HCMS", epsilon, cms.CMSClient(epsilon, hashes, width, is_hadamard=True).privatise),
    ]
    if epsilon <= 1:
        response = hr.HadamardResponseClient(epsilon, k, None, **same)
        found.append(make("Hadamard response", epsilon, response.privatise))
    return found


def _hash(seed: int, width: int, text: str) -> int:
    (xxhash,) = _load_top("xxhash")
    return int(xxhash.xxh32(text, seed=seed).intdigest() % width)


def _opendp(k: int, epsilon: float, values: Sequence[int]) -> list[Peer]:
    (dp,) = _load_top("opendp.prelude")
    dp.enable_features("contrib")
    make = partial(Peer, "opendp")
    e = math.exp(epsilon)
    boolean = dp.m.make_randomized_response_bool(e / (1 + e))
    listed = dp.m.make_randomized_response(categories=list(range(k)), prob=e / (e + k - 1))
    space = dp.bitvector_domain(max_weight=1), dp.discrete_distance()
    unary = dp.m.make_randomized_response_bitvec(*space, f=2 / (1 + math.exp(epsilon / 2)))
    histogram = dp.vector_domain(dp.atom_domain(T=int), k), dp.l1_distance(T=int)
    laplace = dp.m.make_laplace(*histogram, scale=2 / epsilon)
    return [
        make("randomized_response_bool", boolean.map(1), lambda v: boolean(v == values[0])),
        make("randomized_response", listed.map(1), listed),
        make("randomized_response_bitvec", unary.map(1), lambda v: unary(_one_hot(v, k))),
        make("laplace on a histogram", laplace.map(2), lambda v: laplace(_row(v, k))),
    ]


def _one_hot(value: int, k: int) -> bytes:
    return np.packbits(_row(value, k)).tobytes()


def _row(value: int, k: int) -> list[int]:
    return [int(v == value) for v in range(k)]


LIBRARIES: dict[str, Callable[[int, float, Sequence[int]], list[Peer]]] = {
    "multi-freq-ldpy": _multi_freq_ldpy,
    "pure-ldp": _pure_ldp,
    "opendp": _opendp,
}
