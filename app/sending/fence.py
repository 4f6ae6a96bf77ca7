"""The fence of a worker that has been silent: what it had claimed may be another's by now, so it hands nothing over."""

from time import monotonic

SILENCE = 18.0  # seconds without a heartbeat after which nothing more is handed over


class Fence:
    """Shut until the first heartbeat, and after too long a silence until the next one, which begins a new `term`."""

    def __init__(self) -> None:
        self.term = 0
        self._beat_at = float("-inf")  # loop time of the last heartbeat that was saved

    @property
    def is_shut(self) -> bool:
        """Whether the last heartbeat is too old."""
        return monotonic() - self._beat_at > SILENCE

    def renew(self) -> bool:
        """Note a heartbeat; where it was shut before, what was claimed is not ours any more, and False is returned."""
        was_open, self._beat_at = not self.is_shut, monotonic()
        if not was_open:
            self.term += 1
        return was_open
