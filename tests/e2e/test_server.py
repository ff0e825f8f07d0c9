#!/usr/bin/env python3
"""The server with a real model, from outside: what survives a kill, and what it answers.

    test_server.py PROGRAM MODEL [unittest arguments]
"""

import http.client
import json
import os
import shutil
import signal
import socket
import struct
import sys
import tempfile
import threading
import time
import unittest

from server_process import Server, common_prefix, facts, text, usable_prefix, usage

PROGRAM = ""
MODEL = ""
ALIGN = 16384


class ServerTest(unittest.TestCase):
    """A fresh folder per test; whatever runs at its end is killed."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="coldkv-e2e-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.server = None
        self.addCleanup(self.stop)

    def start(self, *extra, **options):
        self.server = Server(PROGRAM, MODEL, self.folder, *extra, **options)
        return self.server

    def stop(self):
        if self.server:
            self.server.kill()

    def restart(self, *extra, **options):
        self.server.kill()
        return self.start(*extra, **options)


class Remembers(ServerTest):
    """The point of it all, on a prompt of more than 3,000 tokens."""

    def test_after_sigkill_the_same_prompt_later_turns_and_a_diverging_one(self):
        document = facts(0, 175)
        question = document + "\nWrite a long story about a lighthouse keeper and his lamp."
        server = self.start("--ctx-size", "8192")
        cold = server.chat(question, max_tokens=64)
        stats = server.wait_durable(1)
        self.assertEqual(stats["durable"]["entries"], 1)
        first = server.traces()[0]
        self.assertEqual(
            stats["durable"]["longest_prefix_tokens"], len(first["evaluated_tokens"])
        )
        self.assertGreaterEqual(usage(cold)[0], 3000)
        self.assertEqual(usage(cold)[1], 0)
        self.assertEqual(len(first["generated_tokens"]), 64)
        self.assertEqual(
            first["evaluated_tokens"], first["prompt_tokens"] + first["generated_tokens"][:-1]
        )

        with self.subTest("the same prompt after SIGKILL"):
            server = self.restart("--ctx-size", "8192")
            warm = server.chat(question, max_tokens=64)
            second = server.traces()[1]
            self.assertEqual(usage(warm)[1], usage(cold)[0] - 1)
            self.assertEqual(text(warm), text(cold))
            self.assertEqual(second["prompt_tokens"], first["prompt_tokens"])
            self.assertEqual(second["generated_tokens"], first["generated_tokens"])
            self.assertEqual(second["first_logits_wyhash"], first["first_logits_wyhash"])
            self.assertGreater(second["restored_bytes"], 0)
            server.wait_durable(1)
            self.assertEqual(len(server.entries()), 1, "nothing is written twice")

        with self.subTest("a second turn"):
            server = self.restart("--ctx-size", "8192")
            turns = [
                {"role": "user", "content": question},
                {"role": "assistant", "content": text(cold)},
                {"role": "user", "content": "Which warehouse is named first?"},
            ]
            reply = server.chat(turns, max_tokens=8)
            third = server.traces()[2]
            expected = usable_prefix(first["evaluated_tokens"], third["prompt_tokens"])
            self.assertGreater(expected, len(first["prompt_tokens"]))
            self.assertEqual(usage(reply)[1], expected)
            self.assertEqual(third["cached_tokens"], expected)
            server.wait_durable(1)

        with self.subTest("a prompt that diverges in the middle"):
            server = self.restart("--ctx-size", "8192")
            other = facts(0, 90) + " Then the lamps ran out. What happened?"
            reply = server.chat(other, max_tokens=8)
            fourth = server.traces()[3]
            expected = max(
                usable_prefix(trace["evaluated_tokens"], fourth["prompt_tokens"])
                for trace in (first, third)
            )
            shared = common_prefix(first["prompt_tokens"], fourth["prompt_tokens"])
            self.assertEqual(expected, shared)
            self.assertGreater(shared, 1500)
            self.assertLess(shared, len(fourth["prompt_tokens"]) - 5)
            self.assertEqual(usage(reply)[1], expected)


class Damage(ServerTest):
    """Whatever lies in the store: a miss, never a failed request, never a wrong token."""

    def setUp(self):
        super().setUp()
        self.question = facts(0, 18) + "\nHow many crates are there?"
        server = self.start()
        self.cold = server.chat(self.question)
        server.wait_durable(1)
        server.kill()
        (self.path,) = server.entries()
        with open(self.path, "rb") as file:
            self.bytes = file.read()
        self.header_bytes = struct.unpack_from("<I", self.bytes, 10)[0]

    def put(self, number, data):
        """Another entry beside the place of the good one."""
        name = f"{number:08x}-0000-4000-8000-000000000000.mlxkv"
        path = os.path.join(os.path.dirname(self.path), name)
        with open(path, "wb") as file:
            file.write(data)
        os.chmod(path, 0o600)
        return path

    def changed(self, offset, data):
        return self.bytes[:offset] + data + self.bytes[offset + len(data) :]

    def flipped(self, offset):
        return self.changed(offset, bytes([self.bytes[offset] ^ 1]))

    def check_miss(self):
        reply = self.server.chat(self.question)
        self.assertEqual(usage(reply)[1], 0)
        self.assertEqual(text(reply), text(self.cold))
        status, health = self.server.request("GET", "/health")
        self.assertEqual((status, health["status"]), (200, "ok"))

    def test_bad_headers_before_the_start(self):
        os.remove(self.path)
        version = self.bytes.index(b'"formatVersion":3') + len('"formatVersion":')
        corrupt = [
            self.flipped(10),
            self.flipped(14),
            self.flipped(18),
            self.flipped(30),
            self.changed(10, b"\xff\xff\xff\xff")[:26],
            self.bytes[:0],
            self.bytes[:25],
            self.bytes[:100],
            self.bytes[: ALIGN + 1],
            self.bytes[:-1],
            self.bytes + b"x",
        ]
        for number, data in enumerate(corrupt):
            self.put(number, data)
        self.put(100, self.flipped(0))
        for digit in b"1245":
            # A version is read before the rest, but only under a right hash.
            changed = bytearray(self.changed(version, bytes([digit])))
            header = bytes(changed[26 : 26 + self.header_bytes])
            struct.pack_into("<Q", changed, 18, wyhash(header))
            self.put(200 + digit, bytes(changed))
        self.start()
        stats = self.server.stats()
        self.assertEqual(stats["durable"]["entries"], 0)
        self.assertEqual(stats["store"]["set_aside"], len(corrupt))
        self.assertEqual(stats["store"]["foreign"], 5)
        self.check_miss()

    def test_a_tensor_byte_flipped_under_a_running_server(self):
        self.start()
        self.assertEqual(self.server.stats()["durable"]["entries"], 1)
        with open(self.path, "r+b") as file:
            file.write(self.flipped(len(self.bytes) - 1000))
        self.check_miss()
        self.assertEqual(self.server.stats()["store"]["set_aside"], 1)
        self.assertTrue(os.path.exists(self.path[: -len("mlxkv")] + "bad"))
        self.assertFalse(os.path.exists(self.path))

    def test_an_entry_that_vanishes_or_shrinks_under_a_running_server(self):
        for cut in (None, 30, ALIGN, len(self.bytes) - 1):
            with self.subTest(cut=cut):
                self.stop()
                for path in self.server.entries():
                    os.remove(path)
                with open(self.path, "wb") as file:
                    file.write(self.bytes)
                os.chmod(self.path, 0o600)
                self.start()
                self.assertEqual(self.server.stats()["durable"]["entries"], 1)
                if cut is None:
                    os.remove(self.path)
                else:
                    os.truncate(self.path, cut)
                self.check_miss()

    def test_a_store_that_has_no_room(self):
        self.server.kill()
        os.remove(self.path)
        self.start("--ssd-cache-max", "64K")
        self.check_miss()
        stats = self.server.wait_durable(1)
        self.assertEqual(stats["durable"]["entries"], 0)
        self.assertGreaterEqual(stats["tier_failures"], 1)
        self.assertEqual(self.server.entries(), [])


class Answers(ServerTest):
    """The OpenAI-compatible surface with one server for all tests."""

    @classmethod
    def setUpClass(cls):
        cls.shared_folder = tempfile.mkdtemp(prefix="coldkv-e2e-")
        cls.shared = Server(PROGRAM, MODEL, cls.shared_folder, "--keepalive", "1")

    @classmethod
    def tearDownClass(cls):
        cls.shared.kill()
        shutil.rmtree(cls.shared_folder)

    def test_streaming_gives_the_same_text_in_pieces(self):
        messages = [{"role": "user", "content": "Name the days of the week, in French."}]
        whole = self.shared.chat(messages, max_tokens=40)
        events, _ = self.shared.stream(
            messages, max_tokens=40, stream_options={"include_usage": True}
        )
        self.assertEqual(events[-1], "[DONE]")
        chunks = [json.loads(event) for event in events[:-1]]
        deltas = [c["choices"][0]["delta"] for c in chunks if c["choices"]]
        self.assertEqual(deltas[0]["role"], "assistant")
        joined = "".join(delta.get("content") or "" for delta in deltas)
        self.assertEqual(joined, text(whole))
        reasons = [c["choices"][0]["finish_reason"] for c in chunks if c["choices"]]
        self.assertEqual(reasons[-1], whole["choices"][0]["finish_reason"])
        self.assertEqual(set(reasons[:-1]), {None})
        self.assertEqual(chunks[-1]["choices"], [])
        self.assertEqual(
            chunks[-1]["usage"]["completion_tokens"], whole["usage"]["completion_tokens"]
        )

    def test_a_stop_string_ends_the_reply_before_it(self):
        messages = [{"role": "user", "content": "Count from one to ten in digits."}]
        whole = text(self.shared.chat(messages, max_tokens=48))
        stop = whole[len(whole) // 2 : len(whole) // 2 + 3]
        reply = self.shared.chat(messages, max_tokens=48, stop=[stop])
        self.assertEqual(text(reply), whole[: whole.index(stop)])
        self.assertEqual(reply["choices"][0]["finish_reason"], "stop")

    def test_max_tokens_ends_with_length(self):
        reply = self.shared.chat("Tell a long story about the sea.", max_tokens=5)
        self.assertEqual(reply["usage"]["completion_tokens"], 5)
        self.assertEqual(reply["choices"][0]["finish_reason"], "length")

    def test_a_seed_makes_sampling_repeatable(self):
        ask = "Invent a name for a boat."
        sampled = dict(max_tokens=12, temperature=1.0, top_p=0.95)
        a = text(self.shared.chat(ask, seed=7, **sampled))
        b = text(self.shared.chat(ask, seed=7, **sampled))
        self.assertEqual(a, b)

    def test_text_parts_equal_a_string(self):
        parts = [{"role": "user", "content": [{"type": "text", "text": "Say hello."}]}]
        self.assertEqual(text(self.shared.chat(parts)), text(self.shared.chat("Say hello.")))

    def test_fields_that_are_not_supported_are_named(self):
        cases = {
            "n": 2,
            "tools": [{"type": "function", "function": {"name": "f"}}],
            "logprobs": True,
            "response_format": {"type": "json_object"},
            "logit_bias": {"5": 1},
        }
        for field, value in cases.items():
            with self.subTest(field=field):
                body = {"messages": [{"role": "user", "content": "x"}], field: value}
                status, reply = self.shared.request("POST", "/v1/chat/completions", body)
                self.assertEqual(status, 400)
                self.assertIn(field, reply["error"]["message"])

    def test_defaults_of_unsupported_fields_are_accepted(self):
        fields = dict(n=1, tools=[], logprobs=False, frequency_penalty=0, user="me")
        fields["response_format"] = {"type": "text"}
        self.assertTrue(self.shared.chat("Say yes.", **fields)["choices"])

    def test_too_long_is_refused_before_any_work(self):
        before = self.shared.stats()
        context = before["context_size"]
        body = {"messages": [{"role": "user", "content": "x"}], "max_tokens": context}
        status, reply = self.shared.request("POST", "/v1/chat/completions", body)
        self.assertEqual(status, 400)
        self.assertIn("max_tokens", reply["error"]["message"])
        body = {"messages": [{"role": "user", "content": "word " * (context + 10)}]}
        status, reply = self.shared.request("POST", "/v1/chat/completions", body)
        self.assertEqual(status, 400)
        self.assertEqual(self.shared.stats()["prompt_tokens"], before["prompt_tokens"])

    def test_who_may_ask(self):
        good = {"messages": [{"role": "user", "content": "Hi."}], "max_tokens": 1}
        cases = [
            ({"Host": "example.com"}, 403),
            ({"Host": "127.0.0.1:1"}, 403),
            ({"Origin": "http://example.com"}, 403),
            ({"Content-Type": "text/plain"}, 415),
            ({"Host": f"localhost:{self.shared.port}"}, 200),
            ({"Origin": f"http://127.0.0.1:{self.shared.port}"}, 200),
        ]
        for headers, expected in cases:
            with self.subTest(headers=headers):
                status, _ = self.shared.request(
                    "POST", "/v1/chat/completions", good, headers
                )
                self.assertEqual(status, expected)

    def test_bad_requests(self):
        cases = [
            (b"{", 400),
            (b"[]", 400),
            (b'{"messages": []}', 400),
            (b'{"messages": [{"role": "user"}]}', 400),
            (b'{"messages": [{"role": "robot", "content": "x"}]}', 400),
            (b'{"messages": [{"role": "user", "content": "x"}], "max_tokens": -1}', 400),
            (b'{"messages": [{"role": "user", "content": "x"}], "top_p": 3}', 400),
            (b"[" * 5000, 400),
            (b" " * (64 * 1024 * 1024), 413),
        ]
        for body, expected in cases:
            with self.subTest(body=body[:40]):
                try:
                    status, _ = self.shared.request("POST", "/v1/chat/completions", body)
                except (BrokenPipeError, ConnectionResetError):
                    # The refusal may come while we still send.
                    self.assertEqual(expected, 413)
                    continue
                self.assertEqual(status, expected)
        self.assertEqual(self.shared.request("GET", "/nowhere")[0], 404)
        self.assertEqual(self.shared.request("DELETE", "/v1/models")[0], 405)

    def test_models_and_health(self):
        status, models = self.shared.request("GET", "/v1/models")
        self.assertEqual(status, 200)
        self.assertEqual(models["object"], "list")
        self.assertEqual(len(models["data"]), 1)
        self.assertEqual(models["data"][0]["object"], "model")

    def test_a_client_that_leaves_frees_its_turn(self):
        before = self.shared.stats()["cancelled"]
        body = {
            "messages": [{"role": "user", "content": "Tell a very long story."}],
            "max_tokens": 1500,
            "stream": True,
        }
        connection = self.shared.connect()
        headers = {"Content-Type": "application/json"}
        connection.request("POST", "/v1/chat/completions", json.dumps(body), headers)
        response = connection.getresponse()
        self.assertTrue(response.readline().startswith(b"data: "))
        connection.sock.shutdown(socket.SHUT_RDWR)
        response.close()
        connection.close()
        self.shared.chat("Hi.", max_tokens=1)
        self.assertEqual(self.shared.stats()["cancelled"], before + 1)

    def test_a_waiting_stream_is_kept_alive(self):
        long = [{"role": "user", "content": facts(0, 60) + " Tell more."}]
        ahead = threading.Thread(target=self.shared.chat, args=(long, 100))
        ahead.start()
        while self.shared.stats()["running"] == 0:
            time.sleep(0.01)
        _, comments = self.shared.stream([{"role": "user", "content": "Hi."}], 1)
        ahead.join()
        self.assertGreaterEqual(len(comments), 1)


class Key(ServerTest):
    def test_a_key_is_needed_when_one_is_set(self):
        path = os.path.join(self.folder, "key")
        with open(path, "w", encoding="utf-8") as file:
            file.write("sesame\n")
        server = self.start("--api-key-file", path)
        body = {"messages": [{"role": "user", "content": "Hi."}], "max_tokens": 1}
        for header, expected in (
            (None, 401),
            ("Bearer wrong", 401),
            ("Bearer sesame1", 401),
            ("sesame", 401),
            ("Bearer sesame", 200),
        ):
            headers = {"Authorization": header} if header else {}
            status, _ = server.request("POST", "/v1/chat/completions", body, headers)
            self.assertEqual(status, expected, header)
        self.assertEqual(server.request("GET", "/stats")[0], 401)
        self.assertEqual(server.request("GET", "/health")[0], 200)


class Signals(ServerTest):
    def test_sigterm_finishes_stores_and_exits_with_0(self):
        server = self.start()
        question = facts(0, 18) + "\nRetell it."
        replies = []
        ask = threading.Thread(target=lambda: replies.append(server.chat(question, 24)))
        ask.start()
        while server.stats()["running"] == 0:
            time.sleep(0.01)
        self.assertEqual(server.terminate(), 0)
        ask.join()
        self.assertIn(replies[0]["choices"][0]["finish_reason"], ("stop", "length"))
        server = self.start()
        self.assertEqual(server.stats()["durable"]["entries"], 1)
        reply = server.chat(question, 24)
        self.assertEqual(usage(reply)[1], usage(reply)[0] - 1)
        self.assertEqual(text(reply), text(replies[0]))

    def test_a_second_sigterm_exits_at_once(self):
        server = self.start()
        connection = server.connect()
        body = {
            "messages": [{"role": "user", "content": "Tell a very long story."}],
            "max_tokens": 1500,
        }
        headers = {"Content-Type": "application/json"}
        connection.request("POST", "/v1/chat/completions", json.dumps(body), headers)
        while server.stats()["running"] == 0:
            time.sleep(0.01)
        server.process.send_signal(signal.SIGTERM)
        while True:
            try:
                status, _ = server.request("POST", "/v1/chat/completions", body)
            except (ConnectionError, http.client.HTTPException):
                break
            if status == 503:
                break
        server.process.send_signal(signal.SIGTERM)
        self.assertEqual(server.process.wait(60), 143)
        connection.close()
        server.kill()


P = (0xA0761D6478BD642F, 0xE7037ED1A0B428DB, 0x8EBC6AF09C88C6E3, 0x589965CC75374CC3)


def wyhash(data):
    """The header's hash, for files that are wrong in something else; over 48 bytes only."""

    def mix(a, b):
        product = a * b
        return (product & (2**64 - 1)) ^ (product >> 64)

    def word(at):
        return int.from_bytes(data[at : at + 8], "little")

    start = mix(P[0], P[1])
    lanes = [start] * 3
    at = 0
    while at + 48 < len(data):
        for k in range(3):
            lanes[k] = mix(word(at + 16 * k) ^ P[k + 1], word(at + 16 * k + 8) ^ lanes[k])
        at += 48
    lane = lanes[0] ^ lanes[1] ^ lanes[2]
    while at + 16 < len(data):
        lane = mix(word(at) ^ P[1], word(at + 8) ^ lane)
        at += 16
    product = (word(len(data) - 16) ^ P[1]) * (word(len(data) - 8) ^ lane)
    a, b = product & (2**64 - 1), product >> 64
    return mix(a ^ P[0] ^ len(data), b ^ P[1])


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    PROGRAM, MODEL = sys.argv[1:3]
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
