"""`connect`: the verbs of a bandit on a decision service, and `connect_async`, the same to be awaited."""

from rightarm.client.bandits import AsyncBandit, RemoteBandit
from rightarm.client.errors import NotAllowed, NotFound, RefusedByService, ServiceError, Unreachable
from rightarm.client.services import AsyncService, Service, connect, connect_async

__all__ = [
    "AsyncBandit",
    "AsyncService",
    "NotAllowed",
    "NotFound",
    "RefusedByService",
    "RemoteBandit",
    "Service",
    "ServiceError",
    "Unreachable",
    "connect",
    "connect_async",
]
