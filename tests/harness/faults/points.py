"""Which call of a run fails, and how."""

import dataclasses
import errno

# A call of each kind fails with one of these. 0: a read or write of half the bytes.
ERRORS = {
    "memory": [errno.ENOMEM],
    "block": [errno.ENOMEM],
    "open": [errno.EMFILE, errno.EACCES, errno.EIO],
    "read": [errno.EIO, 0],
    "write": [errno.ENOSPC, errno.EIO, errno.EPIPE, 0],
    "sync": [errno.EIO, errno.ENOSPC],
    "thread": [errno.EAGAIN],
}
# The system asks to try again, which it never asks for ever.
RETRIED = {"read": [errno.EINTR], "write": [errno.EINTR, errno.EAGAIN]}


@dataclasses.dataclass(frozen=True)
class Point:
    scenario: str
    call: str
    onward: bool  # every later call fails too
    at: int
    error: int

    @property
    def kind(self):
        return kind_name(self.scenario, self.call, self.onward)

    @property
    def name(self):
        return f"{self.kind}.{self.at}.{errno.errorcode.get(self.error, 'half')}"

    @property
    def is_memory(self):
        return self.call in ("memory", "block")

    @property
    def environment(self):
        return {"FAULT_CALL": self.call, "FAULT_AT": str(self.at), "FAULT_ERRNO": str(self.error),
                "FAULT_ONWARD": str(int(self.onward))}  # fmt: skip


def kind_name(scenario, call, onward):
    return f"{scenario}.{call}.{'onward' if onward else 'once'}"


def choose_points(scenario, call, onward, num_calls, limit, generator):
    """All points, or `limit` of them, half among the first calls: a program that starts does
    something new with each, and repeats itself later."""
    errors = ERRORS[call] + ([] if onward else RETRIED.get(call, []))
    points = [Point(scenario, call, onward, at, error)
              for at in range(1, num_calls + 1) for error in errors]  # fmt: skip
    if not limit or len(points) <= limit:
        return points
    num_early = (limit + 1) // 2
    early = points[: max(len(points) // 20, num_early)]
    chosen = generator.sample(early, num_early)
    remaining = sorted(set(points) - set(chosen), key=lambda point: (point.at, point.error))
    return chosen + generator.sample(remaining, limit - num_early)
