"""Routes in three modules: answers of the model, read-only lookups, edits. Here are the helpers they share."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

from fastapi import Header, Request

from kglm.serve.problems import Problem
from kglm.serve.service import Service

SessionName = Annotated[
    str | None,
    Header(
        alias="X-Kglm-Session",
        min_length=22,
        max_length=64,
        pattern=r"^[A-Za-z0-9_-]+$",
        description="A session from POST /api/sessions: the response includes its edits.",
    ),
]


async def check_query(request: Request) -> None:
    """Refuse a query parameter that is given more than once: none of them is a list."""
    counts = Counter(name for name, _ in request.query_params.multi_items())
    for name, count in counts.items():
        if count > 1:
            raise Problem(422, f"query.{name[:60]}: given {count} times; give it once")


def service_of(request: Request) -> Service:
    service: Service = request.app.state.service
    return service
