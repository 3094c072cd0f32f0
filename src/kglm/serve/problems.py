"""Error responses: an HTTP status, a short code for programs and a one-line message for people."""

from __future__ import annotations

import json

from kglm.errors import KglmError, UnknownIdError

CODES = {
    400: "bad_request",
    401: "no_token",
    403: "forbidden",
    404: "not_found",
    405: "wrong_method",
    408: "too_slow",
    413: "too_large",
    415: "not_json",
    422: "invalid",
    429: "busy",
    500: "our_mistake",
    503: "unavailable",
}
MAX_MESSAGE = 500
"""Characters of a message, which may quote a long request."""


class Problem(Exception):
    """An error response, as an exception."""

    def __init__(self, status: int, message: str, code: str | None = None, **headers: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code or CODES.get(status, "refused")
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}

    @property
    def body(self) -> bytes:
        """JSON in ASCII, because a message may quote an unpaired surrogate."""
        return json.dumps(self.content).encode()

    @property
    def content(self) -> dict[str, dict[str, str]]:
        message = " ".join(str(self).split())
        message = message if len(message) <= MAX_MESSAGE else message[: MAX_MESSAGE - 1] + "…"
        return {"error": {"code": self.code, "message": message}}


def from_error(error: KglmError, status: int = 422) -> Problem:
    """The response to an error in the input, without its place: that is a path of this machine."""
    code = "unknown_id" if isinstance(error, UnknownIdError) else "refused"
    remedy = error.remedy
    if remedy is not None and "kglm " in remedy:  # a command line is no help to a client
        remedy = "choose one from the list" if isinstance(error, UnknownIdError) else None
    return Problem(status, error.what if remedy is None else f"{error.what}; {remedy}", code)
