#!/usr/bin/env python3
"""POST /v1/completions, the ways to choose tokens, and what keeps prompts apart or unkept.

    test_completions.py PROGRAM MODEL [unittest arguments]
"""

import json
import shutil
import sys
import tempfile
import unittest

from server_process import Server, facts, usage

PROGRAM = ""
MODEL = ""
NO_STORE = {"X-Coldkv-No-Store": "1"}


def story(number):
    return f"Report {number}. " + facts(number * 40, 4) + " In the end"


class Case(unittest.TestCase):
    """One server for all tests of a class; each asks about a story of its own."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="coldkv-e2e-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.start()
        cls.addClassCleanup(lambda: cls.server.kill())

    @classmethod
    def start(cls):
        cls.server = Server(PROGRAM, MODEL, cls.folder, "--min-tokens", "64")

    def post(self, prompt, headers=None, **fields):
        body = {"prompt": prompt, "temperature": 0, **fields}
        return self.server.request("POST", "/v1/completions", body, headers)

    def complete(self, prompt, headers=None, **fields):
        status, reply = self.post(prompt, headers, **fields)
        self.assertEqual(status, 200, reply)
        return reply

    def generated(self, prompt, **fields):
        """The tokens that were chosen, as the trace has them."""
        self.complete(prompt, **fields)
        return self.server.traces()[-1]["generated_tokens"]


def text(reply):
    return reply["choices"][0]["text"]


class Completions(Case):
    def test_a_text_goes_on_without_a_template(self):
        reply = self.complete(story(1))
        trace = self.server.traces()[-1]
        self.assertEqual(reply["object"], "text_completion")
        self.assertEqual(reply["id"][:5], "cmpl-")
        self.assertEqual(reply["usage"]["completion_tokens"], 16, "the API's default")
        self.assertEqual(reply["choices"][0]["finish_reason"], "length")
        self.assertEqual(usage(reply), (len(trace["prompt_tokens"]), 0))
        self.assertGreater(len(text(reply)), 0)

    def test_tokens_stand_for_the_text_they_are_of(self):
        whole = self.complete([story(2)])
        tokens = self.server.traces()[-1]["prompt_tokens"]
        for prompt in (tokens, [tokens]):
            again = self.complete(prompt)
            self.assertEqual(self.server.traces()[-1]["prompt_tokens"], tokens)
            self.assertEqual(text(again), text(whole))
            self.assertEqual(usage(again), (len(tokens), len(tokens) - 1))

    def test_streaming_gives_the_same_text(self):
        whole = self.complete(story(3), max_tokens=12)
        fields = {"stream": True, "stream_options": {"include_usage": True}}
        raw = self.complete(story(3), max_tokens=12, **fields)
        events = [line[6:] for line in raw.decode().split("\n") if line.startswith("data: ")]
        self.assertEqual(events[-1], "[DONE]")
        chunks = [json.loads(event) for event in events[:-1]]
        self.assertEqual({chunk["object"] for chunk in chunks}, {"text_completion"})
        pieces = [chunk["choices"][0] for chunk in chunks if chunk["choices"]]
        self.assertEqual("".join(piece["text"] for piece in pieces), text(whole))
        self.assertEqual(
            [piece["finish_reason"] for piece in pieces],
            [None] * (len(pieces) - 1) + ["length"],
        )
        self.assertEqual(chunks[-1]["usage"]["completion_tokens"], 12)

    def test_a_stop_string_ends_it(self):
        whole = text(self.complete(story(4), max_tokens=24))
        stop = whole[len(whole) // 2 :][:4]
        reply = self.complete(story(4), max_tokens=24, stop=stop)
        self.assertEqual(text(reply), whole[: whole.index(stop)])
        self.assertEqual(reply["choices"][0]["finish_reason"], "stop")

    def test_a_chat_and_a_completion_share_what_they_have_in_common(self):
        self.server.chat(story(5))
        tokens = self.server.traces()[-1]["prompt_tokens"]
        reply = self.complete(tokens)
        self.assertEqual(usage(reply), (len(tokens), len(tokens) - 1))

    def test_what_cannot_be_served_is_named(self):
        for prompt in ([1, 10**9], "lamp " * 20000, [5] * 9000):
            with self.subTest(prompt=str(prompt)[:20]):
                status, reply = self.post(prompt)
                self.assertEqual(status, 400, reply)
                self.assertEqual(reply["error"]["param"], "prompt")


class Sampling(Case):
    def test_with_one_candidate_chance_has_no_say(self):
        likeliest = self.generated(story(10))
        for fields in ({"top_k": 1}, {"min_p": 1}, {"top_p": 1e-6}):
            with self.subTest(**fields):
                tokens = self.generated(story(10), temperature=2, seed=7, **fields)
                self.assertEqual(tokens, likeliest)
        free = self.generated(story(10), temperature=2, seed=7)
        self.assertNotEqual(free, likeliest, "without a limit chance has one")

    def test_penalties_turn_away_from_what_was_said(self):
        prompt = " ".join([facts(7, 1)] * 8)
        plain = self.generated(prompt)
        said = set(self.server.traces()[-1]["prompt_tokens"][-64:])
        self.assertIn(plain[0], said)
        for fields in (
            {"repetition_penalty": 10},
            {"repeat_penalty": 10},
            {"frequency_penalty": 2},
        ):
            with self.subTest(**fields):
                tokens = self.generated(prompt, **fields)
                self.assertNotIn(tokens[0], said)
        self.assertEqual(self.generated(prompt, presence_penalty=-2), plain)

    def test_penalties_are_the_same_cold_and_restored(self):
        fields = {"repetition_penalty": 1.5, "max_tokens": 24}
        cold = self.generated(story(11), **fields)
        self.assertEqual(self.server.traces()[-1]["cached_tokens"], 0)
        again = self.generated(story(11), **fields)
        self.assertGreater(self.server.traces()[-1]["cached_tokens"], 0)
        self.assertEqual(again, cold)


class Apart(Case):
    def test_a_salt_shares_with_nobody_else(self):
        first = self.complete(story(20), cache_salt="ann")
        prompt = usage(first)[0]
        self.assertEqual(usage(first)[1], 0)
        self.assertEqual(usage(self.complete(story(20), cache_salt="bob"))[1], 0)
        self.assertEqual(usage(self.complete(story(20)))[1], 0)
        again = self.complete(story(20), cache_salt="ann")
        self.assertEqual(usage(again)[1], prompt - 1)
        self.assertEqual(text(again), text(first))
        self.server.flush()
        self.server.kill()
        type(self).start()
        self.assertEqual(usage(self.complete(story(20), cache_salt="eve"))[1], 0)
        for salt in ("ann", "bob", None):
            with self.subTest(salt=salt):
                reply = self.complete(story(20), cache_salt=salt)
                self.assertEqual(usage(reply)[1], prompt - 1)


class Unkept(Case):
    def entries(self):
        status, _ = self.server.flush()
        self.assertEqual(status, 200)
        return len(self.server.entries())

    def test_what_is_not_to_be_stored_is_nowhere(self):
        self.complete(story(30), NO_STORE)
        self.assertEqual(self.entries(), 0)
        stats = self.server.stats()
        self.assertEqual(stats["ram"]["entries"], 0)
        self.assertEqual(stats["durable"]["pending"], 0)
        again = self.complete(story(30), NO_STORE)
        self.assertEqual(usage(again)[1], 0, "not even in the context")

        with self.subTest("what others kept serves it"):
            self.complete(story(31))
            self.assertEqual(self.entries(), 1)
            reply = self.complete(story(31) + " all was well.", NO_STORE)
            self.assertGreater(usage(reply)[1], 32)
            self.assertEqual(self.entries(), 1)

        with self.subTest("chats as well"):
            body = {"messages": [{"role": "user", "content": story(32)}], "max_tokens": 4}
            status, _ = self.server.request("POST", "/v1/chat/completions", body, NO_STORE)
            self.assertEqual(status, 200)
            self.assertEqual(self.entries(), 1)

        with self.subTest("a wish that is not understood"):
            status, reply = self.post(story(33), {"X-Coldkv-No-Store": "maybe"})
            self.assertEqual(status, 400)
            self.assertIn("X-Coldkv-No-Store", reply["error"]["message"])


if __name__ == "__main__":
    PROGRAM, MODEL = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
