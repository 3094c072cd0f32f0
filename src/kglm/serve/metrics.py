"""Request counts and times in the text format of Prometheus."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping

BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
"""Upper bounds of the histogram's buckets, in seconds."""


class Metrics:
    """Counters of one server; only the event loop changes them."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._buckets: dict[str, list[int]] = {}
        self._seconds: Counter[str] = Counter()

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """Record a response. `route` is the pattern of a route, never a path that a client made up."""
        self._requests[method, route, status] += 1
        buckets = self._buckets.setdefault(route, [0] * (len(BOUNDS) + 1))
        for place, bound in enumerate((*BOUNDS, float("inf"))):
            buckets[place] += seconds <= bound
        self._seconds[route] += seconds  # type: ignore[assignment]

    def text(self, gauges: Mapping[str, tuple[str, float]]) -> str:
        """The metrics as text; `gauges` maps further names to (description, value)."""
        lines = [
            "# HELP kglm_requests_total Responses sent.",
            "# TYPE kglm_requests_total counter",
            *(
                f'kglm_requests_total{{method="{method}",route="{route}",status="{status}"}} {count}'
                for (method, route, status), count in sorted(self._requests.items())
            ),
            "# HELP kglm_request_seconds Seconds from a request's head to the end of its response.",
            "# TYPE kglm_request_seconds histogram",
        ]
        for route, buckets in sorted(self._buckets.items()):
            for bound, count in zip((*map(str, BOUNDS), "+Inf"), buckets, strict=True):
                lines.append(f'kglm_request_seconds_bucket{{route="{route}",le="{bound}"}} {count}')
            lines.append(f'kglm_request_seconds_sum{{route="{route}"}} {self._seconds[route]:.6f}')
            lines.append(f'kglm_request_seconds_count{{route="{route}"}} {buckets[-1]}')
        uptime = ("Seconds since the start.", round(time.monotonic() - self._start, 3))
        for name, (description, value) in {"kglm_uptime_seconds": uptime, **gauges}.items():
            kind = "counter" if name.endswith("_total") else "gauge"
            lines += [f"# HELP {name} {description}", f"# TYPE {name} {kind}", f"{name} {value:g}"]
        return "\n".join(lines) + "\n"
