"""The other libraries, each as a client function and an aggregation, as their documentation uses
them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Client = Callable[[int], Any]
Aggregate = Callable[[list[Any]], Any]


@dataclass(frozen=True)
class Peer:
    """One mechanism of another library for a given k and epsilon."""

    library: str
    client: Client
    #: None where the library's aggregation does not count anything yet.
    aggregate: Aggregate | None


def peers(mechanism: str, k: int, epsilon: float) -> list[Peer]:
    """The peers of a mechanism of ours."""
    return [peer for make in (_multi_freq_ldpy, _pure_ldp) for peer in make(mechanism, k, epsilon)]


def sketch_peer(mechanism: str, width: int, cohorts: int, epsilon: float) -> Peer:
    """pure-ldp's sketch of the same width (its m) with as many hash functions (its k)."""
    from pure_ldp.core import FreqOracleServer
    from pure_ldp.frequency_oracles.apple_cms import CMSClient, CMSServer

    class Sized(FreqOracleServer):  # type: ignore[misc]
        """Sketches pass no size, which is np.zeros(None), refused by today's NumPy."""

        def __init__(self, epsilon: float, d: int | None, index_mapper: Any = None) -> None:
            super().__init__(epsilon, d or 0, index_mapper)

    class Server(CMSServer, Sized):  # type: ignore[misc]
        """The server as it is, over a base class that starts."""

    hadamard = mechanism == "hcms"
    make: Any = Server
    server = make(epsilon, cohorts, width, is_hadamard=hadamard)
    client = CMSClient(epsilon, server.get_hash_funcs(), width, is_hadamard=hadamard)
    return Peer("pure-ldp", client.privatise, _one_by_one(server))


def _one_by_one(server: Any) -> Aggregate:
    def aggregate(reports: list[Any]) -> None:
        for report in reports:
            server.aggregate(report)

    return aggregate


def _multi_freq_ldpy(mechanism: str, k: int, epsilon: float) -> list[Peer]:
    from multi_freq_ldpy.pure_frequency_oracles import GRR, LH, SS, UE

    table: dict[str, tuple[Client, Aggregate]] = {
        "grr": (
            lambda v: GRR.GRR_Client(v, k, epsilon),
            lambda r: GRR.GRR_Aggregator_MI(r, k, epsilon),
        ),
        "oue": (
            lambda v: UE.UE_Client(v, k, epsilon, True),
            lambda r: UE.UE_Aggregator_MI(r, epsilon, True),
        ),
        "ss": (
            lambda v: SS.SS_Client(v, k, epsilon),
            lambda r: SS.SS_Aggregator_MI(r, k, epsilon),
        ),
        "olh": (
            lambda v: LH.LH_Client(v, k, epsilon, True),
            lambda r: LH.LH_Aggregator_MI(r, k, epsilon, True),
        ),
    }
    return [Peer("multi-freq-ldpy", *table[mechanism])] if mechanism in table else []


def _pure_ldp(mechanism: str, k: int, epsilon: float) -> list[Peer]:
    from pure_ldp.frequency_oracles.direct_encoding import DEClient, DEServer
    from pure_ldp.frequency_oracles.hadamard_response import HadamardResponseClient
    from pure_ldp.frequency_oracles.local_hashing import LHClient, LHServer
    from pure_ldp.frequency_oracles.unary_encoding import UEClient, UEServer

    same: dict[str, Any] = {"index_mapper": lambda v: v}
    table: dict[str, Callable[[], tuple[Any, Any]]] = {
        "grr": lambda: (DEClient(epsilon, k, **same), DEServer(epsilon, k, **same)),
        "oue": lambda: (
            UEClient(epsilon, k, use_oue=True, **same),
            UEServer(epsilon, k, use_oue=True, **same),
        ),
        "olh": lambda: (
            LHClient(epsilon, k, use_olh=True, **same),
            LHServer(epsilon, k, use_olh=True, **same),
        ),
        "hr": lambda: (HadamardResponseClient(epsilon, k, None, **same), None),
    }
    if mechanism not in table:
        return []
    client, server = table[mechanism]()
    return [Peer("pure-ldp", client.privatise, _one_by_one(server) if server else None)]


def chain_peer(mechanism: str, k: int, epsilon_inf: float, epsilon_1: float) -> Peer:
    """multi-freq-ldpy's longitudinal mechanism."""
    from multi_freq_ldpy.long_freq_est import L_GRR, L_LH, L_OSUE, L_OUE, L_SOUE, L_SUE

    both = epsilon_inf, epsilon_1
    bits = {"lsue": L_SUE, "loue": L_OUE, "lsoue": L_SOUE, "losue": L_OSUE}
    if mechanism in bits:
        stem = mechanism[0].upper() + "_" + mechanism[1:].upper()
        client, aggregate = (
            getattr(bits[mechanism], f"{stem}_{part}") for part in ("Client", "Aggregator_MI")
        )
        return _chain(lambda v: client(v, k, *both), lambda r: aggregate(r, *both))
    if mechanism == "lgrr":
        return _chain(
            lambda v: L_GRR.L_GRR_Client(v, k, *both),
            lambda r: L_GRR.L_GRR_Aggregator_MI(r, k, *both),
        )
    best = mechanism == "lolh"
    return _chain(
        lambda v: L_LH.L_LH_Client(v, k, *both, best),
        lambda r: L_LH.L_LH_Aggregator_MI(r, k, *both, best),
    )


def _chain(client: Client, aggregate: Aggregate) -> Peer:
    return Peer("multi-freq-ldpy", client, aggregate)
