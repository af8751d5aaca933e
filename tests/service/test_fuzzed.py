"""Schemathesis on the OpenAPI document: no status that is not documented, no answer of another form, no 5xx."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.specs.openapi import checks
from serving import HOME, server

CHECKS = [
    schemathesis.checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
    checks.negative_data_rejection,
]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with server(tmp_path_factory.mktemp("fuzzed")) as (_, found):
        for name in ("home", "a", "0"):  # names that are found by chance too
            assert httpx.put(f"{found}/bandits/{name}", json=HOME, timeout=60).status_code == 201
        yield found


def fuzz(address: str, examples: int) -> int:
    """Play so many cases of each operation twice, right ones and wrong ones; says how many these were."""
    schema: Any = schemathesis.openapi.from_url(f"{address}/openapi.json")
    modes = GenerationMode.POSITIVE, GenerationMode.NEGATIVE
    return sum(played(found.ok(), mode, examples) for found in schema.get_all_operations() for mode in modes)


def played(operation: Any, mode: GenerationMode, examples: int) -> int:
    """Play so many cases of an operation; says how many these were."""
    count = 0

    @settings(max_examples=examples, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(case=operation.as_strategy(generation_mode=mode))
    def play(case: Any) -> None:
        nonlocal count
        count += 1
        if count % 2 and "name" in case.path_parameters and mode is GenerationMode.POSITIVE:
            case.path_parameters["name"] = "home"  # which is there
        answer = case.call(timeout=60)
        refused = answer.status_code == 413  # which Schemathesis does not count as a refusal
        case.validate_response(answer, checks=CHECKS[:-1] if refused else CHECKS)

    with contextlib.suppress(Unsatisfiable):  # where nothing is given, nothing can be wrong
        play()
    return count


@pytest.mark.full
def test_a_few_hundred_requests(address: str) -> None:
    assert fuzz(address, 6) > 150


@pytest.mark.full
def test_ten_thousand_requests(address: str) -> None:
    assert fuzz(address, 400) >= 10_000
