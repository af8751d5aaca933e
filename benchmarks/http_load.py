"""Load for an HTTP server on this machine: so many connections, each with one request under way at a time.

`python -m benchmarks.http_load PORT KIND CONNECTIONS REQUESTS [RATE]` prints JSON: requests a second, and quantiles of
how long they took. With RATE requests begin at that many a second, whether or not those before them are answered, and
how long they took counts from when they should have begun.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import deque
from typing import Any

import uvloop

NAME = "home"


class Client(asyncio.Protocol):
    """One connection: sends a request, awaits the whole answer."""

    def __init__(self) -> None:
        self.data, self.answer = b"", asyncio.get_running_loop().create_future()

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.data += data
        head = self.data.find(b"\r\n\r\n")
        if head < 0:
            return
        lowered = self.data[:head].lower()
        place = lowered.index(b"content-length:") + 15
        length = int(lowered[place:].split(b"\r\n", 1)[0])
        if len(self.data) < head + 4 + length:
            return
        if not self.data.startswith(b"HTTP/1.1 200"):
            raise SystemExit(self.data.decode())
        body, self.data = self.data[head + 4 : head + 4 + length], self.data[head + 4 + length :]
        self.answer.set_result(body)

    async def send(self, request: bytes) -> bytes:
        """The body of the answer."""
        self.answer = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        found: bytes = await self.answer
        return found

    async def post(self, path: str, body: bytes) -> bytes:
        """The body of the answer to a verb."""
        head = f"POST /bandits/{NAME}/{path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n\r\n"
        return await self.send(head.encode() + body)


async def one(client: Client, kind: str) -> int:
    """An exchange: says how many requests it had."""
    if kind == "constant":
        await client.post("constant", b"{}")
        return 1
    if kind == "routed":
        await client.send(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n")
        return 1
    decision = json.loads(await client.post("ask", b"{}"))["decision"]
    await client.post("tell", b'{"decision":%d,"reward":%d}' % (decision, decision % 2))
    return 2


async def load(port: int, kind: str, connections: int, requests: int, rate: float | None) -> dict[str, float]:
    """Requests from all connections; rate and quantiles."""
    loop = asyncio.get_running_loop()
    clients = [(await loop.create_connection(Client, "127.0.0.1", port))[1] for _ in range(connections)]
    took, done = list[float](), 0
    each = 2 if kind == "durable" else 1  # requests of an exchange
    exchanges = requests // each
    begin = time.perf_counter()
    pace = 0.0 if rate is None else each / rate
    due = deque(begin + place * pace for place in range(exchanges))

    async def work(client: Client) -> None:
        nonlocal done
        while due:
            should = due.popleft()
            now = time.perf_counter()
            if rate is None:
                should = now
            elif now < should:
                await asyncio.sleep(should - now)
            count = await one(client, kind)
            took.append((time.perf_counter() - should) / count)
            done += count

    await asyncio.gather(*(work(client) for client in clients))
    seconds = time.perf_counter() - begin
    took.sort()
    quantiles = {f"p{q}": took[min(len(took) - 1, int(len(took) * q / 100))] for q in (50, 99)}
    return {"rate": done / seconds, **quantiles}


def main() -> None:
    """The program."""
    port, kind, connections, requests, *rest = sys.argv[1:]
    rate = float(rest[0]) if rest else None
    uvloop.install()
    print(json.dumps(asyncio.run(load(int(port), kind, int(connections), int(requests), rate))))


if __name__ == "__main__":
    main()
