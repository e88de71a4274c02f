"""Opening: the memory that is served, opened when it is first needed, so that a mistake reaches the client in words."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from alma.closing import Closing
from alma.mcp.server import Options, config_of

if TYPE_CHECKING:
    from alma.core import ALMA


class Opened(Closing):
    """One memory for all requests; an attempt to open it that fails is made again by the next request.

    A memory that is given is closed by whoever gave it.
    """

    def __init__(self, options: Options, given: ALMA | None = None) -> None:
        self._options = options
        self._alma = given
        self._is_given = given is not None
        self._lock = threading.Lock()

    def alma(self) -> ALMA:
        """The memory."""
        with self._lock:
            if self._alma is None:
                self._alma = self._open()
                self._alma.start_expiry()
            return self._alma

    def close(self) -> None:
        """Close the memory, if it was opened; one that is still being opened is left to the end of the process."""
        if self._is_given or not self._lock.acquire(blocking=False):
            return
        try:
            if self._alma is not None:
                self._alma.close()
        finally:
            self._lock.release()

    def _open(self) -> ALMA:
        from alma.core import ALMA, DEFAULT_PROJECT

        config = config_of(self._options)
        if config is not None:
            return ALMA.from_config(config)
        return ALMA.quickstart(self._options.store, self._options.project or DEFAULT_PROJECT)
