"""`connect`: the verbs of a bandit on a decision service, and `connect_async`, the same to be awaited."""

from rightarm.client.remote import AsyncBandit, AsyncService, RemoteBandit, RemoteService, connect, connect_async
from rightarm.client.service_requests import NotAllowed, NotFound, RefusedByService, ServiceError, Unreachable

__all__ = [
    "AsyncBandit",
    "AsyncService",
    "NotAllowed",
    "NotFound",
    "RefusedByService",
    "RemoteBandit",
    "RemoteService",
    "ServiceError",
    "Unreachable",
    "connect",
    "connect_async",
]
