"""Every promise of a store, on SQLite and on PostgreSQL."""

from collections.abc import Callable

import pytest

from rightarm.store.store_contract import PROMISES, Contract
from rightarm.testing import check_store


def test_all_promises(store_url: str) -> None:
    check_store(store_url)


@pytest.mark.parametrize("promise", PROMISES[:-1], ids=lambda promise: promise.__name__)
def test_each_promise_by_itself(promise: Callable[[Contract], None], sqlite_url: str) -> None:
    contract = Contract(sqlite_url)
    promise(contract)
    contract.close()
