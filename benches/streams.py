#!/usr/bin/env python3
"""How many streams the client of `llm-perf serve` reads at once, and how late it reads them: against a server on loopback that sends
every stream a token each 100 ms and notes when."""

import json
import os
import selectors
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from benchmark import program, provenance, run, table, write_section

STREAMS = [int(count) for count in sys.argv[1:]] or [500, 1000, 2000]
TOKENS = 50
# Every stream is in one of so many groups; each group gets its tokens at once.
GROUPS, PERIOD = 100, 0.1
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
TOKEN = b'data: {"choices":[{"text":"a"}]}\n\n'
USAGE = b'data: {"choices":[],"usage":{"prompt_tokens":8,"completion_tokens":%d}}\n\ndata: [DONE]\n\n' % TOKENS


def whole(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%s" % (len(body), body)


class Server(threading.Thread):
    """One process of its own; `sent` has the times of every stream's tokens, by the id that its request came with."""

    def __init__(self, listener: socket.socket) -> None:
        super().__init__(daemon=True)
        self.listener, self.sent = listener, {}
        self.waiting = selectors.DefaultSelector()
        self.waiting.register(listener, selectors.EVENT_READ)
        self.groups = [{} for _ in range(GROUPS)]

    def run(self) -> None:
        tick, began, count = 0, time.monotonic(), 0
        while True:
            due = began + tick * PERIOD / GROUPS
            for key, _ in self.waiting.select(max(due - time.monotonic(), 0)):
                if key.fileobj is self.listener:
                    client, _ = self.listener.accept()
                    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    self.waiting.register(client, selectors.EVENT_READ, bytearray())
                    continue
                self.read(key.fileobj, key.data, count)
                count += 1
            if time.monotonic() >= due:
                self.send(self.groups[tick % GROUPS])
                tick += 1

    def read(self, client: socket.socket, data: bytearray, count: int) -> None:
        data += client.recv(65536)
        head, _, body = bytes(data).partition(b"\r\n\r\n")
        fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
        if len(body) < int(fields.get(b"content-length", 0)):
            return
        self.waiting.unregister(client)
        if head.startswith(b"POST"):
            client.send(HEAD)
            self.groups[count % GROUPS][client] = self.sent.setdefault(fields[b"x-request-id"].decode(), [])
        else:
            client.send(whole(b'{"data":[{"id":"m"}]}'))
            client.close()

    def send(self, group: dict) -> None:
        for client, times in list(group.items()):
            times.append(time.time_ns())
            client.send(TOKEN)
            if len(times) == TOKENS:
                client.send(USAGE)
                client.close()
                del group[client]


def serve(listener: socket.socket, log: Path) -> None:
    """Serves in this process until it is asked for what it has sent."""
    server = Server(listener)
    server.start()
    sys.stdin.readline()
    log.write_text(json.dumps(server.sent))


def measure(streams: int, folder: Path) -> list[str]:
    listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
    log, out = folder / f"{streams}.json", folder / str(streams)
    code = f"import socket, streams; streams.serve(socket.socket(fileno={listener.fileno()}), streams.Path({str(log)!r}))"
    server = subprocess.Popen([sys.executable, "-c", code], cwd=Path(__file__).parent, stdin=subprocess.PIPE, pass_fds=[listener.fileno()])
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    load = ["--concurrency", str(streams), "--requests", str(streams * 2), "--input", "8", "--output", str(TOKENS)]
    command = [program(), "-q", "serve", "--url", url, *load, "--warmup", "0", "--window", "0", "--stop-early", "--out", str(out)]
    before = os.times()
    done = subprocess.run(command, capture_output=True, text=True)
    used = os.times().children_user + os.times().children_system - before.children_user - before.children_system
    if done.returncode not in (0, 3):
        sys.exit(done.stderr)
    server.communicate(b"\n")
    sent = json.loads(log.read_text())
    requests = [json.loads(line) for line in (out / "requests.jsonl").read_text().splitlines()[1:]]
    metrics = json.loads((out / "metrics.json").read_text())
    late = sorted(
        (request["due_ns"] + chunk - at) / 1e6
        for request in requests
        for chunk, at in zip(request["chunks_ns"], sent[request["id"]], strict=True)
    )
    seconds = metrics["serving"]["load"]["duration_ns"] / 1e9
    itl = metrics["serving"]["load"]["itl"]
    return [
        f"{streams:,}",
        f"{len(late) / seconds:,.0f}",
        f"{used / seconds:.2f}",
        f"{statistics.median(late):.2f}",
        f"{late[len(late) * 99 // 100]:.2f}",
        f"{itl['p50']['ns'] / 1e6:.1f}",
        f"{itl['p99']['ns'] / 1e6:.1f}",
        "; ".join(metrics.get("caveats") and [str(one.get("text", one)) for one in metrics["caveats"]] or []) or "none",
    ]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        rows = [measure(streams, Path(folder)) for streams in STREAMS]
    header = ["streams at once", "tokens/s", "client, cores", "read late, ms (p50)", "(p99)", "ITL, ms (p50)", "(p99)", "no verdict because"]
    text = (
        f"{provenance()}\nClosed loops on loopback, server (Python, one core) and client on the same machine; {TOKENS} tokens a "
        f"stream, one each {PERIOD * 1e3:.0f} ms. \"Read late\" is from when the server sends a token to the time that the client notes. "
        "`benches/streams.py`"
    )
    write_section("streams", f"{text}\n\n{table(header, rows)}")


if __name__ == "__main__":
    main()
