"""The schema against the server: whatever fits it or does not, no answer is a mistake of ours or in another form.

`KGLM_EXAMPLES=500 pytest -m slow tests/serve/test_schema.py` looks further.
"""

from __future__ import annotations

import os
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import CHECKS
from schemathesis.generation import GenerationMode

from support.serving import Client

QUICK, LONG = 3, int(os.environ.get("KGLM_EXAMPLES", "150"))
PASSED = {
    "not_a_server_error", "status_code_conformance", "content_type_conformance", "response_schema_conformance",
    "response_headers_conformance", "negative_data_rejection", "unsupported_method",
}  # fmt: skip


@pytest.fixture(scope="session")
def described(client: Client) -> Any:
    """The schema of a server that allows edits."""
    return schemathesis.openapi.from_url(f"http://127.0.0.1:{client.port}/openapi.json")


def look(described: Any, count: int, mode: GenerationMode, session: str | None) -> set[str]:
    """Ask everything that the schema describes, so many times each; which operations were asked."""
    checks = [each for each in CHECKS.get_all() if each.__name__ in PASSED]
    asked: set[str] = set()
    for found in described.get_all_operations():
        operation = found.ok()

        @settings(
            max_examples=count, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True,
            database=None, phases=[Phase.explicit, Phase.generate],
        )  # fmt: skip
        @given(operation.as_strategy(generation_mode=mode))
        def one(case: Any) -> None:
            if session is not None:
                case.headers = {**(case.headers or {}), "X-Kglm-Session": session}
            asked.add(f"{case.method} {case.path}")
            answer = case.call()
            too_large = answer.status_code == 413  # a refusal too, though the check does not know it
            case.validate_response(answer, checks=[c for c in checks if not (too_large and "negative" in c.__name__)])

        try:
            one()
        except Unsatisfiable:  # it takes nothing that could be wrong
            assert mode is GenerationMode.NEGATIVE
    return asked


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["fits", "misfits"])
def test_a_few_of_each(described: Any, client: Client, mode: GenerationMode) -> None:
    asked = look(described, QUICK, mode, client.with_session().session)
    assert len(asked) == (17 if mode is GenerationMode.POSITIVE else len(asked)) >= 12


@pytest.mark.slow
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["fits", "misfits"])
@pytest.mark.parametrize("with_session", [True, False])
def test_many_of_each(described: Any, client: Client, mode: GenerationMode, with_session: bool) -> None:
    look(described, LONG, mode, client.with_session().session if with_session else None)


def test_the_checks_are_there(described: Any) -> None:
    """Which are loaded with the first schema."""
    assert {each.__name__ for each in CHECKS.get_all()} >= PASSED
