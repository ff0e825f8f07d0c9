"""A `coldkv serve` process under test: started on a free port, spoken to, killed by its id."""

import http.client
import json
import os
import signal
import subprocess
import threading
import time

START_SECONDS = 120
REPLY_SECONDS = 1200


class Server:
    """One process. `folder` keeps its store, trace and log; a restart finds them again."""

    def __init__(self, program, model, folder, *extra, threads=1, ssd=True):
        self.folder = folder
        self.headers = {}
        self.trace_path = os.path.join(folder, "trace.jsonl")
        self.log_path = os.path.join(folder, "server.log")
        self.store = os.path.join(folder, "store")
        command = [program, "serve", "--model", model, "--port", "0"]
        if ssd:
            command += ["--ssd-cache", self.store, "--ssd-cache-max", "4G"]
            command += ["--ssd-cache-free-floor", "1M"]
        command += ["--trace", self.trace_path]
        command += ["--threads", str(threads), *extra]
        self.log = open(self.log_path, "ab")
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=self.log, stdin=subprocess.DEVNULL
        )
        self.port = self._wait_ready()

    def _wait_ready(self):
        line = []
        reader = threading.Thread(
            target=lambda: line.append(self.process.stdout.readline()), daemon=True
        )
        reader.start()
        reader.join(START_SECONDS)
        text = line[0].decode() if line else ""
        if not text.startswith("coldkv: listening on http://127.0.0.1:"):
            self.kill()
            raise RuntimeError(f"not ready: {text!r}; log: {self.log_text()}")
        return int(text.rsplit(":", 1)[1])

    def log_text(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def traces(self):
        with open(self.trace_path, encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=REPLY_SECONDS)

    def request(self, method, path, body=None, headers=None):
        """Status and decoded JSON (or bytes)."""
        connection = self.connect()
        try:
            sent = {"Content-Type": "application/json"} if body is not None else {}
            sent.update(headers or {})
            data = body if isinstance(body, (bytes, type(None))) else json.dumps(body)
            connection.request(method, path, data, sent)
            response = connection.getresponse()
            raw = response.read()
            if "json" in (response.getheader("Content-Type") or ""):
                return response.status, json.loads(raw)
            return response.status, raw
        finally:
            connection.close()

    def chat(self, messages, max_tokens=16, **fields):
        """A greedy chat completion that must succeed."""
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        body = {"messages": messages, "max_tokens": max_tokens, "temperature": 0}
        body.update(fields)
        status, reply = self.request("POST", "/v1/chat/completions", body)
        if status != 200:
            raise RuntimeError(f"{status}: {reply}")
        return reply

    def stream(self, messages, max_tokens=16, **fields):
        """The data events of a streamed chat, [DONE] included, and all comment lines."""
        body = {"messages": messages, "max_tokens": max_tokens, "temperature": 0}
        body.update(stream=True, **fields)
        status, raw = self.request("POST", "/v1/chat/completions", body)
        if status != 200:
            raise RuntimeError(f"{status}: {raw}")
        lines = raw.decode("utf-8").split("\n")
        events = [line[6:] for line in lines if line.startswith("data: ")]
        comments = [line for line in lines if line.startswith(":")]
        return events, comments

    def timed(self, messages, max_tokens=16, **fields):
        """A greedy streamed chat: (seconds to the first text, the text, its usage)."""
        body = {"messages": messages, "max_tokens": max_tokens, "temperature": 0}
        body.update(stream=True, stream_options={"include_usage": True}, **fields)
        connection = self.connect()
        try:
            begin = time.monotonic()
            connection.request(
                "POST",
                "/v1/chat/completions",
                json.dumps(body),
                {"Content-Type": "application/json"},
            )
            response = connection.getresponse()
            if response.status != 200:
                raise RuntimeError(f"{response.status}: {response.read()}")
            first, pieces, counts = None, [], None
            for line in response:
                if not line.startswith(b"data: {"):
                    continue
                chunk = json.loads(line[6:])
                counts = chunk.get("usage") or counts
                for choice in chunk["choices"]:
                    piece = choice["delta"].get("content")
                    if piece:
                        first = first or time.monotonic() - begin
                        pieces.append(piece)
            return first, "".join(pieces), counts
        finally:
            connection.close()

    def stats(self):
        status, stats = self.request("GET", "/stats")
        if status != 200:
            raise RuntimeError(f"/stats: {status}")
        return stats

    def flush(self):
        """(status, evidence) of POST /admin/cache/flush."""
        return self.request("POST", "/admin/cache/flush", headers=self.headers)

    def wait_durable(self, completed):
        """Until `completed` requests are answered and everything that can be is stored."""
        deadline = time.monotonic() + REPLY_SECONDS
        while self.stats()["completed"] < completed:
            if time.monotonic() > deadline:
                raise RuntimeError("the requests did not complete")
            time.sleep(0.02)
        self.flush()
        return self.stats()

    def entries(self):
        """Paths of the stored entries."""
        found = []
        for folder, _, names in os.walk(self.store):
            found += [os.path.join(folder, n) for n in names if n.endswith(".mlxkv")]
        return sorted(found)

    def kill(self):
        """SIGKILL: what a crash or the kernel does."""
        self._end(signal.SIGKILL)

    def terminate(self):
        """SIGTERM; the exit status."""
        self._end(signal.SIGTERM)
        return self.process.returncode

    def _end(self, number):
        if self.process.poll() is None:
            self.process.send_signal(number)
        self.process.wait(REPLY_SECONDS)
        # Closing twice is fine: what ended by itself is cleaned up here too.
        self.process.stdout.close()
        self.log.close()


def usage(reply):
    """(prompt tokens, cached tokens) of a reply."""
    counts = reply["usage"]
    return counts["prompt_tokens"], counts["prompt_tokens_details"]["cached_tokens"]


def text(reply):
    return reply["choices"][0]["message"]["content"]


def common_prefix(a, b):
    count = 0
    for x, y in zip(a, b):
        if x != y:
            break
        count += 1
    return count


def usable_prefix(entry, prompt):
    """What an entry that can be cut anywhere serves: one token stays to be evaluated."""
    return min(common_prefix(entry, prompt), len(prompt) - 1)


def facts(first, count):
    """A document of numbered sentences; nothing in it repeats."""
    return " ".join(
        f"Record {i}: warehouse {i * 37 % 101} received {i * i % 89} crates of lamps."
        for i in range(first, first + count)
    )
