# SPDX-License-Identifier: MIT
"""JAX has no steps of its own to see; how long it compiled is told to whoever listens."""
from typing import Any

from .. import _marks

# JAX's name of the event -> ours
EVENTS = {"/jax/core/compile/backend_compile_duration": "jax.compile_seconds"}


def install(jax: Any) -> None:
    marks = _marks.shared()

    def heard(event: str, seconds: float, **more: Any) -> None:
        try:
            name = EVENTS.get(event)
            if name:
                marks.named(_marks.SCALAR, name, float(seconds))
        except Exception:
            pass

    jax.monitoring.register_event_duration_secs_listener(heard)
