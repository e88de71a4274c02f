"""The environment of a process whose imports are examined: measuring coverage imports modules as well."""

from __future__ import annotations

import os


def unmeasured() -> dict[str, str]:
    """This environment without what makes a new process measure its coverage."""
    return {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_PROCESS")}
