"""The server against its own schema: requests that fit it and requests that do not, sent to every operation.

`KGLM_EXAMPLES=500 pytest -m slow tests/serve/test_schema.py` sends more of them.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import CHECKS
from schemathesis.core.failures import FailureGroup
from schemathesis.generation import GenerationMode

from support.serving import Client

FEW, MANY = 3, int(os.environ.get("KGLM_EXAMPLES", "150"))
REQUIRED_CHECKS = {
    "not_a_server_error", "status_code_conformance", "content_type_conformance", "response_schema_conformance",
    "response_headers_conformance", "negative_data_rejection", "unsupported_method",
}  # fmt: skip
MODES = pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["fits", "misfits"])


class Sent(NamedTuple):
    """The operations that got a request, and those that refused one (status 4xx)."""

    operations: set[str]
    refusing: set[str]


@pytest.fixture(scope="session")
def schema(client: Client) -> Any:
    """The schema of a server that allows edits."""
    return schemathesis.openapi.from_url(f"http://127.0.0.1:{client.port}/openapi.json", timeout=120)


def send(schema: Any, count: int, mode: GenerationMode, session: str | None) -> Sent:
    """Send `count` requests to each operation, and check every response."""
    checks = [check for check in CHECKS.get_all() if check.__name__ in REQUIRED_CHECKS]
    sent = Sent(set(), set())
    for result in schema.get_all_operations():
        operation = result.ok()

        @settings(
            max_examples=count, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True,
            database=None, phases=[Phase.explicit, Phase.generate],
        )  # fmt: skip
        @given(operation.as_strategy(generation_mode=mode))
        def one(case: Any) -> None:
            if session is not None:
                case.headers = {**(case.headers or {}), "X-Kglm-Session": session}
            name = f"{case.method} {case.path}"
            sent.operations.add(name)
            response = case.call(timeout=120)  # the machine may be busy
            if 400 <= response.status_code < 500:
                sent.refusing.add(name)
            too_large = response.status_code == 413  # a refusal, which the check does not count as one
            case.validate_response(response, checks=[c for c in checks if not (too_large and "negative" in c.__name__)])

        try:
            one()
        except Unsatisfiable:  # the operation has no input that could be wrong
            assert mode is GenerationMode.NEGATIVE
    return sent


def operations(client: Client, *, with_input: bool) -> set[str]:
    """All operations of the schema, or those with parameters or a body besides the session."""
    return {
        f"{method.upper()} {path}"
        for path, methods in client.get("/openapi.json").json["paths"].items()
        for method, operation in methods.items()
        if not with_input
        or "requestBody" in operation
        or any(parameter["in"] != "header" for parameter in operation.get("parameters", ()))
    }


def test_requests_that_fit(schema: Any, client: Client) -> None:
    sent = send(schema, FEW, GenerationMode.POSITIVE, client.with_session().session)
    assert sent.operations == operations(client, with_input=False) and len(sent.operations) == 18


def test_requests_that_do_not_fit(schema: Any, client: Client) -> None:
    """Every operation that takes input refuses some."""
    sent = send(schema, FEW, GenerationMode.NEGATIVE, client.with_session().session)
    assert sent.refusing >= operations(client, with_input=True)


def test_a_misfit_that_is_accepted_is_found(client: Client) -> None:
    """The negative case can fail: the server accepts texts, which this schema forbids."""
    stricter = client.get("/openapi.json").json
    stricter["paths"] = {"/api/link": stricter["paths"]["/api/link"]}
    del stricter["paths"]["/api/link"]["post"]["parameters"]
    stricter["components"]["schemas"]["LinkRequest"]["properties"] = {"text": {"type": "integer"}}
    schema = schemathesis.openapi.from_dict(stricter)
    schema.config.update(base_url=f"http://127.0.0.1:{client.port}")
    with pytest.raises(FailureGroup, match="Schema-violating request accepted"):
        send(schema, 500, GenerationMode.NEGATIVE, None)  # it ends with the first one


@pytest.mark.slow
@MODES
@pytest.mark.parametrize("with_session", [True, False])
def test_many_of_each(schema: Any, client: Client, mode: GenerationMode, with_session: bool) -> None:
    send(schema, MANY, mode, client.with_session().session if with_session else None)


def test_the_checks_are_there(schema: Any) -> None:
    """Schemathesis loads them with the first schema."""
    assert {check.__name__ for check in CHECKS.get_all()} >= REQUIRED_CHECKS
