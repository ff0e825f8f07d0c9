#!/usr/bin/env python3
"""The server's tiers with a real model, from outside: which one serves, what is durable
when, and what is counted.

    test_tiers.py PROGRAM MODEL [unittest arguments]
"""

import os
import re
import shutil
import sys
import tempfile
import threading
import time
import unittest

from server_process import Server, facts, text, usable_prefix, usage

PROGRAM = ""
MODEL = ""
TOKEN_BYTES = 23052  # of SmolLM2-135M: 12 + 30 layers x (k, v) x 3 heads x 64 x 2 bytes
HEADER_BYTES_MAX = 64 * 1024


class TierTest(unittest.TestCase):
    """A fresh folder per test; whatever runs at its end is killed."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="coldkv-e2e-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.server = None
        self.addCleanup(self.stop)

    def start(self, *extra, **options):
        extra = ("--min-tokens", "64", *extra)
        self.server = Server(PROGRAM, MODEL, self.folder, *extra, **options)
        return self.server

    def stop(self):
        if self.server:
            self.server.kill()

    def source(self):
        return self.server.traces()[-1]["source"]


def question(number):
    return f"Conversation {number}. " + facts(number * 40, 3) + " Which one is the largest?"


class Sources(TierTest):
    def test_live_then_ram_then_store_give_the_same_reply(self):
        server = self.start()
        cold = server.chat(question(1))
        self.assertEqual((usage(cold)[1], self.source()), (0, "none"))
        live = server.chat(question(1))
        self.assertEqual((usage(live)[1], self.source()), (usage(cold)[0] - 1, "live"))
        server.chat(question(2))
        ram = server.chat(question(1))
        self.assertEqual((usage(ram)[1], self.source()), (usage(cold)[0] - 1, "ram"))
        self.assertEqual(server.terminate(), 0)
        server = self.start()
        disk = server.chat(question(1))
        self.assertEqual((usage(disk)[1], self.source()), (usage(cold)[0] - 1, "store"))
        for reply in (live, ram, disk):
            self.assertEqual(text(reply), text(cold))
        traces = server.traces()
        same = [t for t in traces if t["prompt_tokens"] == traces[0]["prompt_tokens"]]
        self.assertEqual(len(same), 4)
        self.assertEqual(len({t["first_logits_wyhash"] for t in same}), 1)

    def test_without_room_in_memory_the_store_serves(self):
        server = self.start("--prompt-cache", "0")
        cold = server.chat(question(1))
        server.chat(question(2))
        self.assertEqual(server.flush()[0], 200)
        self.assertEqual(server.stats()["ram"]["entries"], 0)
        again = server.chat(question(1))
        self.assertEqual((usage(again)[1], self.source()), (usage(cold)[0] - 1, "store"))
        self.assertEqual(text(again), text(cold))

    def test_without_a_disk_memory_serves(self):
        server = Server(PROGRAM, MODEL, self.folder, ssd=False)
        self.server = server
        cold = server.chat(question(1))
        server.chat(question(2))
        again = server.chat(question(1))
        self.assertEqual((usage(again)[1], self.source()), (usage(cold)[0] - 1, "ram"))
        self.assertEqual(server.flush()[0], 409)
        stats = server.stats()
        self.assertIsNone(stats["store"])
        self.assertEqual(stats["ram"]["entries"], 2)

    def test_idle_entries_leave_the_memory_and_stay_on_disk(self):
        server = self.start("--ssd-demote-idle", "1", "--keepalive", "1")
        cold = server.chat(question(1))
        while server.stats()["ram"]["demotions"] < 1:
            time.sleep(0.05)
        self.assertEqual(server.flush()[0], 200)
        stats = server.stats()
        self.assertEqual((stats["ram"]["entries"], stats["durable"]["entries"]), (0, 1))
        server.chat(question(2), max_tokens=1)
        again = server.chat(question(1))
        self.assertEqual((usage(again)[1], self.source()), (usage(cold)[0] - 1, "store"))

    def test_a_reply_that_is_regenerated_costs_no_second_entry(self):
        server = self.start()
        server.chat(question(1), max_tokens=16)
        server.chat(question(1), max_tokens=8)
        self.assertEqual(server.flush()[0], 200)
        stats = server.stats()
        self.assertEqual((stats["ram"]["entries"], stats["stored_entries"]), (1, 1))


class Flush(TierTest):
    def test_what_it_calls_durable_survives_sigkill(self):
        server = self.start()
        replies = [server.chat(question(n), max_tokens=4) for n in range(3)]
        status, evidence = server.flush()
        self.assertEqual(status, 200)
        self.assertIs(evidence["durable"], True)
        self.assertEqual((evidence["entries"], evidence["pending_snapshots"]), (3, 0))
        longest = max(len(t["evaluated_tokens"]) for t in server.traces())
        self.assertEqual(evidence["longest_durable_prefix_tokens"], longest)
        server.kill()
        server = self.start()
        for n, reply in enumerate(replies):
            again = server.chat(question(n), max_tokens=4)
            self.assertEqual(usage(again)[1], usage(reply)[0] - 1)
            self.assertEqual(text(again), text(reply))

    def test_it_writes_nothing_twice(self):
        server = self.start()
        server.chat(question(1), max_tokens=4)
        self.assertEqual(server.flush()[0], 200)
        first = server.stats()["store"]
        self.assertEqual(first["puts"], 1)
        status, evidence = server.flush()
        self.assertEqual((status, evidence["flushed_snapshots"]), (200, 0))
        self.assertEqual(server.terminate(), 0)
        (path,) = server.entries()
        written = os.stat(path).st_ino
        server = self.start()
        server.chat(question(1), max_tokens=4)
        self.assertEqual(server.flush()[0], 200)
        self.assertEqual(server.stats()["store"]["puts"], 0)
        (path,) = server.entries()
        self.assertEqual(os.stat(path).st_ino, written)

    def test_without_room_it_says_what_is_not_durable(self):
        server = self.start("--ssd-cache-max", "64K")
        server.chat(question(1), max_tokens=4)
        status, evidence = server.flush()
        self.assertEqual(status, 503)
        self.assertIs(evidence["durable"], False)
        self.assertGreaterEqual(evidence["pending_snapshots"] + evidence["failed_spills"], 1)
        self.assertEqual(evidence["entries"], 0)

    def test_who_may_flush_and_how(self):
        path = os.path.join(self.folder, "key")
        with open(path, "w", encoding="utf-8") as file:
            file.write("sesame\n")
        server = self.start("--api-key-file", path)
        self.assertEqual(server.flush()[0], 401)
        self.assertEqual(server.request("GET", "/metrics")[0], 401)
        server.headers = {"Authorization": "Bearer sesame"}
        self.assertEqual(server.flush()[0], 200)
        status, _ = server.request("GET", "/admin/cache/flush", headers=server.headers)
        self.assertEqual(status, 405)


class Metrics(TierTest):
    def samples(self):
        status, raw = self.server.request("GET", "/metrics")
        self.assertEqual(status, 200)
        found = {}
        families = set()
        for line in raw.decode().splitlines():
            if line.startswith("# TYPE "):
                families.add(line.split()[2])
            if line.startswith("#"):
                continue
            match = re.fullmatch(r'(coldkv_[a-z_]+)(\{[a-z]+="[a-z_]+"\})? ([0-9.e+-]+)', line)
            self.assertIsNotNone(match, line)
            self.assertIn(match[1], families, "its type stands before it")
            self.assertNotIn(match[1] + (match[2] or ""), found, "no sample comes twice")
            found[match[1] + (match[2] or "")] = float(match[3])
        return found

    def test_they_add_up(self):
        server = self.start()
        for number in (1, 1, 2, 1):
            server.chat(question(number), max_tokens=4)
        self.assertEqual(server.flush()[0], 200)
        found = self.samples()
        traces = server.traces()
        self.assertEqual(found['coldkv_requests_total{outcome="completed"}'], 4)
        self.assertEqual(found['coldkv_hits_total{tier="live"}'], 1)
        self.assertEqual(found['coldkv_hits_total{tier="ram"}'], 1)
        misses = [v for k, v in found.items() if k.startswith("coldkv_misses_total")]
        self.assertEqual(sum(misses), 2)
        for tier in ("live", "ram", "queue", "store"):
            expected = sum(t["cached_tokens"] for t in traces if t["source"] == tier)
            self.assertEqual(found[f'coldkv_reused_tokens_total{{tier="{tier}"}}'], expected)
        prompts = sum(len(t["prompt_tokens"]) for t in traces)
        self.assertEqual(found["coldkv_prompt_tokens_total"], prompts)
        self.assertEqual(found["coldkv_stores_total"], 2)
        self.assertEqual(found["coldkv_store_entries"], 2)
        self.assertEqual(found["coldkv_pending_snapshots"], 0)
        self.assertGreater(found["coldkv_store_seconds_total"], 0)
        on_disk = sum(os.path.getsize(path) for path in server.entries())
        self.assertEqual(found["coldkv_store_bytes_total"], on_disk)
        ratio = found["coldkv_store_bytes_total"] / found["coldkv_reused_bytes_total"]
        self.assertAlmostEqual(found["coldkv_bytes_written_per_byte_reused"], ratio, 5)


class Conversation:
    """One client's talk; what it knows about the server is what the replies say."""

    def __init__(self, number):
        self.messages = [{"role": "user", "content": question(number)}]
        self.prompt_tokens = 0
        self.usages = []

    def turn(self, server):
        reply = server.chat(self.messages, max_tokens=8)
        self.usages.append(usage(reply))
        self.prompt_tokens = usage(reply)[0]
        self.messages.append({"role": "assistant", "content": text(reply)})
        self.messages.append({"role": "user", "content": f"And number {len(self.messages)}?"})


class Conversations(TierTest):
    """Twenty at once, from four clients, with restarts between their turns."""

    COUNT = 20
    CLIENTS = 4

    def all_turns(self, conversations):
        failures = []

        def client(mine):
            try:
                for conversation in mine:
                    conversation.turn(self.server)
            except Exception as error:  # noqa: BLE001
                failures.append(error)

        threads = [
            threading.Thread(target=client, args=(conversations[i :: self.CLIENTS],))
            for i in range(self.CLIENTS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])

    def test_twenty_through_sigterm_and_sigkill(self):
        conversations = [Conversation(n) for n in range(self.COUNT)]
        self.start()
        self.all_turns(conversations)
        self.all_turns(conversations)
        before = [c.prompt_tokens for c in conversations]
        self.assertEqual(self.server.terminate(), 0)
        first_run = self.server.traces()
        self.assertEqual(len(self.server.entries()), self.COUNT, "older turns are superseded")

        self.start()
        self.assertEqual(self.server.stats()["durable"]["entries"], self.COUNT)
        self.all_turns(conversations)
        for conversation, prompt_tokens in zip(conversations, before):
            self.assertGreaterEqual(conversation.usages[-1][1], prompt_tokens)
        stats = self.server.stats()
        # At most one write a turn, none of them of more than the turn's tokens.
        bound = sum(
            len(t["evaluated_tokens"]) * TOKEN_BYTES + HEADER_BYTES_MAX
            for t in self.server.traces()[len(first_run) :]
        )
        self.assertLessEqual(stats["stored_bytes"], bound)
        self.assertLessEqual(stats["stored_entries"], self.COUNT)

        # What is not durable is lost with SIGKILL, what was durable is not.
        self.server.kill()
        self.start()
        self.all_turns(conversations)
        traces = self.server.traces()
        known = [t["evaluated_tokens"] for t in first_run]
        for trace in traces[-self.COUNT :]:
            prompt = trace["prompt_tokens"]
            durable = max(usable_prefix(tokens, prompt) for tokens in known)
            self.assertGreaterEqual(trace["cached_tokens"], durable)


if __name__ == "__main__":
    PROGRAM, MODEL = sys.argv[1:3]
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:], verbosity=2)
