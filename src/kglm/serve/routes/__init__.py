"""Routes in three modules: answers of the model, read-only lookups, edits. Here are the helpers they share."""

from __future__ import annotations

from typing import Annotated

from fastapi import Header, Request

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


def service_of(request: Request) -> Service:
    service: Service = request.app.state.service
    return service
