"""A rate limiter for a service on asyncio: a user may do so much in each window of time, counted for
all processes of the service together.

    softverbs-run python3 rate_limiter.py 127.0.0.1:7471     (or without softverbs-run, on an RDMA NIC)

A counter is an item of its own for each user and window. incr makes it, and its time to live ends it,
so that nothing has to be cleaned up.
"""

import asyncio
import sys
import time

import gannet
import gannet.aio


class RateLimiter:
    def __init__(self, client: gannet.aio.Client, limit: int, window: float) -> None:
        self._client = client
        self._limit = limit
        self._window = window

    async def allow(self, user: str, now: float) -> bool:
        """Counts a request, and tells whether it may go on. If the store does not answer, it may: a
        limiter that fails must not stop the service."""
        key = f"rate:{user}:{int(now / self._window)}"
        try:
            return await self._client.incr(key, ttl=2 * self._window) <= self._limit
        except (gannet.Unavailable, gannet.DeadlineExceeded):
            return True


async def main(server: str) -> None:
    async with gannet.aio.Client(server) as client:
        limiter = RateLimiter(client, limit=3, window=60.0)
        now = time.time()
        # Requests of two users at once. What is begun in one turn of the loop shares a post.
        allowed = await asyncio.gather(*(limiter.allow("alice", now) for _ in range(5)), limiter.allow("bob", now))
        print("alice:", sum(allowed[:5]), "of 5 requests allowed")
        print("bob:", "allowed" if allowed[5] else "refused")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: rate_limiter.py HOST:PORT")
    asyncio.run(main(sys.argv[1]))
