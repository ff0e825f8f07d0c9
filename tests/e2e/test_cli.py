#!/usr/bin/env python3
"""The command `coldkv` from outside: what it prints, what it writes, how it ends.

    test_cli.py PROGRAM DATA [unittest arguments]

PROGRAM is the built command, DATA the folder tests/data with the golden files.
"""

import errno
import hashlib
import json
import os
import pty
import select
import shutil
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = ""
DATA = ""
PREFIX_BYTES = 26
ALIGN = 16384
MASK = (1 << 64) - 1
P = (0xA0761D6478BD642F, 0xE7037ED1A0B428DB, 0x8EBC6AF09C88C6E3, 0x589965CC75374CC3)
ELEMENT_BYTES = [1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 4, 8, 2, 8]


def wyhash(data):
    """Seed 0; a second implementation, so that tests can make files with right hashes."""

    def mul(a, b):
        product = a * b
        return product & MASK, product >> 64

    def mix(a, b):
        low, high = mul(a, b)
        return low ^ high

    def word(at):
        return int.from_bytes(data[at : at + 8], "little")

    size = len(data)
    lane = mix(P[0], P[1])
    a = b = 0
    if size > 16:
        at = 0
        if size >= 48:
            lanes = [lane] * 3
            while at + 48 < size:
                for k in range(3):
                    lanes[k] = mix(
                        word(at + 16 * k) ^ P[k + 1], word(at + 16 * k + 8) ^ lanes[k]
                    )
                at += 48
            lane = lanes[0] ^ lanes[1] ^ lanes[2]
        while at + 16 < size:
            lane = mix(word(at) ^ P[1], word(at + 8) ^ lane)
            at += 16
        a, b = word(size - 16), word(size - 8)
    elif size >= 4:
        half = (size >> 3) << 2

        def quarter(at):
            return int.from_bytes(data[at : at + 4], "little")

        a = quarter(0) << 32 | quarter(half)
        b = quarter(size - 4) << 32 | quarter(size - 4 - half)
    elif size > 0:
        a = data[0] << 16 | data[size >> 1] << 8 | data[-1]
    a, b = mul(a ^ P[1], b ^ lane)
    return mix(a ^ P[0] ^ size, b ^ P[1])


def align(size):
    return (size + ALIGN - 1) // ALIGN * ALIGN


def with_header(text, payload, gap=b"\0"):
    """A file with this header text, its hash right, and the payload behind."""
    start = align(PREFIX_BYTES + len(text))
    prefix = b"MLXBUNKV2\n" + struct.pack("<IIQ", len(text), start, wyhash(text))
    return (prefix + text).ljust(start, gap) + payload


def kv_file(key="", created=1751900000000, version=3, tokens=(1, 2), space="", meta=None):
    """A small good file of one kv cache; `key` is put before "tokens"."""
    payload = bytes(range(16)).ljust(ALIGN, b"\0") + bytes(range(16, 32))
    hashes = [wyhash(payload[:16]), wyhash(payload[ALIGN:])]
    tensors = ",".join(
        '{"off":%d,"bytes":16,"shape":[1,1,2,4],"dtype":12,"hash":"%016x"}'
        % (i * ALIGN, hashes[i])
        for i in range(2)
    )
    meta = '"modelId":"m",' if meta is None else meta
    text = (
        '{"formatVersion":%d,%s"createdAt":%d,%s%s"tokens":[%s],'
        '"caches":[{"kind":"kv","offset":2,"tensors":[%s]}]}'
        % (version, space, created, meta, key, ",".join(map(str, tokens)), tensors)
    )
    return with_header(text.encode(), payload)


def read(path):
    with open(path, "rb") as f:
        return f.read()


def write(path, data):
    with open(path, "wb") as f:
        f.write(data)


def sha256(path):
    return hashlib.sha256(read(path)).hexdigest()


def header_of(data):
    size = struct.unpack_from("<I", data, 10)[0]
    return json.loads(data[PREFIX_BYTES : PREFIX_BYTES + size])


def run(*args, **options):
    """Runs the command; output as text, never longer than a minute."""
    return subprocess.run(
        [PROGRAM, *args],
        stdout=options.pop("stdout", subprocess.PIPE),
        stderr=subprocess.PIPE,
        timeout=60,
        check=False,
        text=True,
        **options,
    )


class CliTest(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="coldkv-cli-")
        self.addCleanup(shutil.rmtree, self.dir)
        reference = os.path.join(DATA, "reference")
        with open(os.path.join(reference, "manifest.json"), encoding="utf-8") as f:
            self.manifest = json.load(f)
        self.reference = reference
        self.zero = os.path.join(DATA, "two-kv-zero.mlxkv")
        self.golden = [os.path.join(reference, m["file"]) for m in self.manifest]
        self.golden.append(self.zero)

    def path(self, *names):
        return os.path.join(self.dir, *names)

    def put(self, data, *names):
        path = self.path(*names)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        write(path, data)
        return path

    def expect(self, code, *args, **options):
        """Runs, checks the exit code and that nothing could command a terminal."""
        result = run(*args, **options)
        self.assertEqual(
            result.returncode, code, f"{args}: {result.stdout}{result.stderr}"
        )
        for text in (result.stdout or "", result.stderr):
            self.assertRegex(text, r"\A[\n\x20-\x7e]*\Z")
        return result


class Overview(CliTest):
    def test_help_names_every_command(self):
        for args in (["help"], ["--help"], ["-h"]):
            result = self.expect(0, *args)
            for name in ("serve", "inspect", "verify", "repack"):
                self.assertIn(f"\n    {name} ", result.stdout)
            self.assertEqual(result.stderr, "")

    def test_no_command_is_usage_and_shows_the_overview(self):
        result = self.expect(2)
        self.assertEqual(result.stdout, "")
        self.assertIn("coldkv COMMAND", result.stderr)

    def test_help_of_a_command_by_each_way(self):
        for name in ("inspect", "verify", "repack"):
            texts = [
                self.expect(0, "help", name).stdout,
                self.expect(0, name, "--help").stdout,
                self.expect(0, name, "-h").stdout,
                self.expect(0, name, "x", "--help").stdout,
            ]
            self.assertEqual(len(set(texts)), 1)
            self.assertIn(f"coldkv {name} ", texts[0])
            self.assertIn("Examples:", texts[0])
            self.assertIn("Exit code: 0 ", texts[0])

    def test_version(self):
        self.assertRegex(self.expect(0, "--version").stdout, r"\Acoldkv \d+\.\d+\.\d+\n\Z")

    def test_unknown_command_suggests_the_nearest(self):
        self.assertIn("did you mean `coldkv verify`?", self.expect(2, "verfiy").stderr)
        self.assertIn("did you mean `coldkv inspect`?", self.expect(2, "inspct").stderr)
        self.assertNotIn("did you mean", self.expect(2, "frobnicate").stderr)
        self.assertIn("\\x1b[2J", self.expect(2, "\x1b[2J").stderr)

    def test_unknown_options_are_usage(self):
        self.assertIn(
            "did you mean --json?", self.expect(2, "inspect", "--jsn", "x").stderr
        )
        self.assertIn("--json takes no value", self.expect(2, "verify", "--json=1").stderr)
        self.assertIn("\\x1b", self.expect(2, "repack", "--\x1b", "a", "b").stderr)
        for args in (
            ["inspect"],
            ["inspect", "a", "b"],
            ["verify"],
            ["verify", "--quiet"],
            ["repack"],
            ["repack", "a"],
            ["repack", "a", "b", "c"],
        ):
            self.assertIn(f"Try: coldkv {args[0]} --help", self.expect(2, *args).stderr)

    def test_serve_is_there_or_says_how_to_get_it(self):
        result = run("serve", "--help")
        if result.returncode == 0:
            self.assertIn("--ssd-cache", result.stdout)
        else:
            self.assertEqual(result.returncode, 2)
            self.assertIn("make serve", result.stderr)


class Inspect(CliTest):
    def inspect(self, path, *args):
        return json.loads(self.expect(0, "inspect", "--json", *args, path).stdout)

    def test_golden_files_agree_with_the_manifest(self):
        for wanted in self.manifest:
            found = self.inspect(os.path.join(self.reference, wanted["file"]))
            for key, value in wanted.items():
                if key != "sha256":
                    self.assertEqual(found[key], value, f"{wanted['file']}: {key}")

    def test_two_kv_zero_is_the_worked_example_of_the_format(self):
        found = self.inspect(self.zero)
        wanted = {
            "file": "two-kv-zero.mlxkv",
            "size": 65664,
            "formatVersion": 3,
            "canonical": True,
            "createdAt": 1751900000000,
            "createdAtText": "2025-07-07T14:53:20.000Z",
            "headerBytes": 544,
            "headerHash": "0045070b10ad5e02",
            "dataStart": 16384,
            "tensorBytes": 512,
            "tokens": 4,
            "floor": 0,
            "storable": True,
            "kinds": ["kv", "kv"],
            "tensors": 4,
        }
        self.assertEqual({key: found[key] for key in wanted}, wanted)
        self.assertEqual(
            list(found["metadata"].items()),
            [
                ("modelId", "stub"),
                ("configFingerprint", "fp-a"),
                ("tokenizerHash", "tk-a"),
                ("ns", ""),
            ],
        )
        slots = [t for c in found["caches"] for t in c["tensors"]]
        self.assertEqual([t["off"] for t in slots], [0, 16384, 32768, 49152])
        self.assertEqual([t["fileOffset"] for t in slots], [16384, 32768, 49152, 65536])
        self.assertEqual({t["hash"] for t in slots}, {"b06da037eb85a067"})
        self.assertEqual({t["bytes"] for t in slots}, {128})

    def test_json_says_what_the_header_says(self):
        for path in self.golden:
            header = header_of(read(path))
            found = self.inspect(path, "--tokens")
            self.assertEqual(found["tokenIds"], header["tokens"])
            self.assertEqual(found["createdAt"], header["createdAt"])
            self.assertTrue(found["canonical"], path)
            meta = {
                k: v
                for k, v in header.items()
                if k not in ("formatVersion", "createdAt", "tokens", "caches")
            }
            self.assertEqual(list(found["metadata"].items()), list(meta.items()))
            self.assertEqual(len(found["caches"]), len(header["caches"]))
            for mine, theirs in zip(found["caches"], header["caches"]):
                for key, value in theirs.items():
                    if key != "tensors":
                        self.assertEqual(mine[key], value)
                for slot, wanted in zip(mine["tensors"], theirs["tensors"]):
                    self.assertEqual({k: slot[k] for k in wanted}, wanted)
                    count = 1
                    for axis in wanted["shape"]:
                        count *= axis
                    self.assertEqual(slot["bytes"], count * ELEMENT_BYTES[slot["dtype"]])

    def test_token_ids_are_shown_only_when_asked_for(self):
        path = self.put(kv_file(tokens=(987654321, 123456789)), "a.mlxkv")
        for args in ([], ["--json"]):
            quiet = self.expect(0, "inspect", *args, path).stdout
            self.assertNotIn("987654321", quiet)
            loud = self.expect(0, "inspect", "--tokens", *args, path).stdout
            self.assertIn("987654321", loud)
        self.assertNotIn("tokenIds", self.inspect(path))

    def test_floor_follows_the_kind(self):
        def floors(name):
            found = self.inspect(os.path.join(self.reference, name))
            return found["floor"], [c["floor"] for c in found["caches"]]

        self.assertEqual(floors("kv.mlxkv"), (0, [0]))
        self.assertEqual(floors("rotating-prewrap.mlxkv"), (0, [0]))
        self.assertEqual(floors("rotating-wrapped.mlxkv"), (10, [10]))
        self.assertEqual(floors("ssm.mlxkv"), (5, [5]))
        self.assertEqual(floors("all-kinds.mlxkv")[0], 12)

    def test_a_state_names_its_engine_and_its_own_floor(self):
        payload = b"opaque"
        text = (
            '{"formatVersion":3,"createdAt":1,"tokens":[1,2,3],"caches":[{"kind":"state",'
            '"offset":3,"engine":"engine-x","floor":2,"tensors":[{"off":0,"bytes":6,'
            '"shape":[6],"dtype":1,"hash":"%016x"}]}]}' % wyhash(payload)
        )
        path = self.put(with_header(text.encode(), payload), "state.mlxkv")
        found = self.inspect(path)
        self.assertTrue(found["canonical"])
        self.assertEqual((found["floor"], found["kinds"]), (2, ["state"]))
        self.assertEqual(found["caches"][0]["engine"], "engine-x")
        self.assertEqual(found["caches"][0]["tensors"][0]["dtypeName"], "uint8")
        shown = self.expect(0, "inspect", path).stdout
        self.assertIn("cache 0  state  offset 3  floor 2  engine engine-x", shown)
        self.assertIn("at least 2 tokens", shown)
        self.expect(0, "repack", path, self.path("out"))
        self.assertEqual(read(self.path("out")), read(path))

    def test_what_no_store_would_serve_is_said(self):
        for tokens in ((), (1,)):
            path = self.put(kv_file(tokens=tokens), "a.mlxkv")
            self.assertFalse(self.inspect(path)["storable"])
            self.assertIn("served by a store  no: ", self.expect(0, "inspect", path).stdout)

    def test_text_shows_the_facts(self):
        text = self.expect(0, "inspect", self.zero).stdout
        for words in (
            "3, canonical",
            "2025-07-07T14:53:20.000Z (1751900000000)",
            '"stub"',
            "544 bytes, hash 0045070b10ad5e02",
            "65664 bytes (64.1 KiB)",
            "cache 1  kv  offset 4  floor 0",
            "keys",
            "bfloat16",
            "[1,2,4,8]",
            "b06da037eb85a067",
        ):
            self.assertIn(words, text)

    def test_header_strings_are_escaped_in_text_and_exact_in_json(self):
        path = os.path.join(self.reference, "meta-escapes.mlxkv")
        text = self.expect(0, "inspect", path).stdout
        self.assertIn('"q"uote\\x5cback/slash\\x08\\x0c\\x0a\\x0d\\x09\\x01\\x1f\\x7f"', text)
        header = header_of(read(path))
        self.assertEqual(self.inspect(path)["metadata"]["ns"], header["ns"])
        hostile = kv_file(meta='"modelId":"\x7f\\u001b]0;x\\u0007",')
        path = self.put(hostile, "hostile.mlxkv")
        self.assertIn("\\x7f\\x1b]0;x\\x07", self.expect(0, "inspect", path).stdout)
        self.assertEqual(self.inspect(path)["metadata"]["modelId"], "\x7f\x1b]0;x\x07")

    def test_file_names_are_escaped(self):
        path = self.put(kv_file(), "\x1b[2Jname\n.mlxkv")
        self.assertIn("\\x1b[2Jname\\x0a.mlxkv\n", self.expect(0, "inspect", path).stdout)
        self.assertEqual(self.inspect(path)["file"], "\x1b[2Jname\n.mlxkv")
        broken = self.put(b"nothing", "\x1b[2Jbad\n.mlxkv")
        self.assertIn("\\x1b[2Jbad\\x0a", self.expect(1, "inspect", broken).stderr)
        raw = os.path.join(os.fsencode(self.dir), b"\xff.mlxkv")
        write(raw, kv_file())
        self.assertEqual(self.inspect(raw)["file"], "\\xff.mlxkv")

    def test_not_canonical_is_said(self):
        path = self.put(kv_file(key='"later":{"a":[1]},'), "a.mlxkv")
        self.assertFalse(self.inspect(path)["canonical"])
        self.assertIn("not canonical", self.expect(0, "inspect", path).stdout)

    def test_links_are_followed(self):
        os.symlink(self.zero, self.path("link"))
        os.symlink(self.dir, self.path("loop"))
        found = self.inspect(self.path("loop", "loop", "link"))
        self.assertEqual(found["file"], "two-kv-zero.mlxkv")
        self.assertEqual(found["path"], self.path("loop", "loop", "link"))

    def test_a_relative_name_works(self):
        self.put(kv_file(), "a.mlxkv")
        self.expect(0, "inspect", "a.mlxkv", cwd=self.dir)
        self.put(kv_file(), "-x")
        self.expect(0, "inspect", "--", "-x", cwd=self.dir)

    def test_what_cannot_be_shown_is_named_with_its_reason(self):
        good = kv_file()
        cases = {
            "missing": (None, "No such file"),
            "empty.mlxkv": (b"", ""),
            "short.mlxkv": (good[:20], ""),
            "cut.mlxkv": (good[:-1], ""),
            "text.mlxkv": (b"hello world, this is no cache file at all", "magic"),
            "v1.mlxkv": (good.replace(b"MLXBUNKV2", b"MLXBUNKV1"), "magic"),
            "v4.mlxkv": (kv_file(version=4), "formatVersion"),
            "long.mlxkv": (b"MLXBUNKV2\n\xff\xff\xff\xff".ljust(26, b"\0"), ""),
        }
        for name, (data, words) in cases.items():
            path = self.path(name) if data is None else self.put(data, name)
            result = self.expect(1, "inspect", path)
            self.assertEqual(result.stdout, "")
            self.assertIn(f"coldkv inspect: {path}: ", result.stderr)
            self.assertIn(words, result.stderr)
        self.assertIn("4", self.expect(1, "inspect", self.path("v4.mlxkv")).stderr)
        self.expect(1, "inspect", self.dir)
        self.expect(1, "inspect", "/")
        self.expect(1, "inspect", "")

    def test_a_fifo_is_refused_without_waiting(self):
        os.mkfifo(self.path("fifo.mlxkv"))
        self.expect(1, "inspect", self.path("fifo.mlxkv"))


class Verify(CliTest):
    def test_golden_files_are_good(self):
        result = self.expect(0, "verify", *self.golden)
        self.assertEqual(
            result.stdout.splitlines()[-1].split(";")[0], f"{len(self.golden)} good, 0 bad"
        )
        self.assertEqual(len(result.stdout.splitlines()), 1)
        self.assertEqual(result.stderr, "")

    def test_a_folder_is_searched_to_the_bottom(self):
        for names in (("a.mlxkv",), ("fp", "base", "b.mlxkv"), ("fp", "1f", "c.mlxkv")):
            self.put(kv_file(), *names)
        self.put(b"", ".lock")
        self.put(b"{}", "fp", "identity.json")
        self.put(b"x", "fp", "base", "d.bad")
        self.put(b"x", "fp", "base", ".e.part")
        self.put(b"x", "fp", "base", "f.mlxkv.tmp")
        os.symlink(self.zero, self.path("fp", "link.mlxkv"))
        os.symlink(self.dir, self.path("fp", "loop"))
        result = self.expect(0, "verify", self.dir)
        self.assertIn("3 good, 0 bad", result.stdout)
        self.assertIn("1 set aside (*.bad)", result.stdout)
        self.assertIn("2 temporary", result.stdout)
        self.assertIn("1 not regular", result.stdout)
        os.symlink(self.dir, self.dir + "-link")
        self.addCleanup(os.unlink, self.dir + "-link")
        for path in (self.dir + "/", self.dir + "-link", self.dir + "/fp/.."):
            self.assertIn("3 good", self.expect(0, "verify", path).stdout)

    def test_a_flipped_tensor_byte_names_file_and_tensor(self):
        data = bytearray(read(os.path.join(self.reference, "all-kinds.mlxkv")))
        header = header_of(data)
        start = struct.unpack_from("<I", data, 14)[0]
        slot = header["caches"][2]["tensors"][4]
        data[start + slot["off"] + slot["bytes"] - 1] ^= 1
        path = self.put(data, "flipped.mlxkv")
        good = self.put(kv_file(), "good.mlxkv")
        result = self.expect(1, "verify", self.dir)
        lines = result.stdout.splitlines()
        self.assertEqual(len(lines), 2)
        self.assertTrue(lines[0].startswith(f"bad: {path}: "))
        self.assertRegex(lines[0], r"cache.?.?2")
        self.assertRegex(lines[0], r"tensor.?.?4")
        self.assertIn(slot["hash"], lines[0])
        self.assertIn("1 good, 1 bad", lines[1])
        self.expect(0, "verify", good)
        self.assertEqual(read(path), data)

    def test_every_flipped_bit_of_prefix_and_header_is_noticed(self):
        data = kv_file()
        end = PREFIX_BYTES + struct.unpack_from("<I", data, 10)[0]
        for at in list(range(PREFIX_BYTES)) + list(range(PREFIX_BYTES, end, 17)):
            changed = bytearray(data)
            changed[at] ^= 1 << (at % 8)
            self.expect(1, "verify", self.put(changed, "a.mlxkv"))

    def test_every_kind_of_cut_is_noticed(self):
        data = kv_file()
        for size in (0, 1, 25, 26, 27, 200, 16383, 16384, 16399, 16400, len(data) - 1):
            self.expect(1, "verify", self.put(data[:size], "a.mlxkv"))
        self.expect(1, "verify", self.put(data + b"\0", "a.mlxkv"))

    def test_json_gives_counts_and_problems(self):
        bad = bytearray(kv_file())
        bad[-1] ^= 1
        self.put(bad, "bad.mlxkv")
        self.put(kv_file(), "good.mlxkv")
        self.put(kv_file(version=5), "later.mlxkv")
        self.put(b"x", "x.bad")
        result = self.expect(1, "verify", "--json", self.dir, self.path("none"))
        found = json.loads(result.stdout)
        counts = {k: found[k] for k in ("good", "bad", "failed", "skipped", "warnings")}
        self.assertEqual(
            counts, {"good": 1, "bad": 1, "failed": 1, "skipped": 1, "warnings": 0}
        )
        self.assertEqual(found["bytes"], len(kv_file()))
        self.assertEqual(found["notRead"], {"setAside": 1, "temporary": 0, "special": 0})
        problems = {p["path"]: p for p in found["problems"]}
        self.assertEqual(
            {k: (p["result"], p["status"]) for k, p in problems.items()},
            {
                self.path("bad.mlxkv"): ("bad", "corrupt"),
                self.path("later.mlxkv"): ("skipped", "version"),
                self.path("none"): ("failed", "notfound"),
            },
        )
        self.assertTrue(all(p["reason"] for p in problems.values()))

    def test_other_versions_in_a_folder_are_skipped_and_named_ones_fail(self):
        self.put(kv_file(), "good.mlxkv")
        later = self.put(kv_file(version=4), "later.mlxkv")
        other = self.put(b"another program's file, quite long enough", "other.mlxkv")
        result = self.expect(0, "verify", self.dir)
        self.assertIn(f"skipped: {later}: ", result.stdout)
        self.assertIn(f"skipped: {other}: ", result.stdout)
        self.assertIn("1 good, 0 bad, 2 skipped", result.stdout)
        for path in (later, other):
            self.assertIn(f"failed: {path}: ", self.expect(1, "verify", path).stdout)

    def test_quiet_shows_only_what_is_wrong(self):
        self.put(kv_file(), "good.mlxkv")
        self.put(kv_file(version=4), "later.mlxkv")
        self.assertEqual(self.expect(0, "verify", "-q", self.dir).stdout, "")
        bad = self.put(kv_file()[:-1], "bad.mlxkv")
        lines = self.expect(1, "verify", "--quiet", self.dir).stdout.splitlines()
        self.assertEqual(len(lines), 1)
        self.assertTrue(lines[0].startswith(f"bad: {bad}: "))

    def test_nothing_verified_is_not_all_good(self):
        result = self.expect(1, "verify", self.dir)
        self.assertIn("no file was verified", result.stderr)
        self.expect(1, "verify", self.path("missing"))
        self.put(kv_file(version=4), "later.mlxkv")
        self.expect(1, "verify", self.dir)

    def test_one_fault_does_not_hide_the_others(self):
        first = self.put(kv_file()[:-1], "a.mlxkv")
        last = self.put(kv_file()[:-2], "z.mlxkv")
        self.put(kv_file(), "m.mlxkv")
        result = self.expect(1, "verify", self.path("none"), self.dir)
        self.assertIn(f"bad: {first}: ", result.stdout)
        self.assertIn(f"bad: {last}: ", result.stdout)
        self.assertIn("1 good, 2 bad, 1 failed", result.stdout)

    def test_unused_bytes_that_hold_something_are_a_warning(self):
        data = bytearray(kv_file())
        data[16384 + 100] = 7
        path = self.put(data, "a.mlxkv")
        result = self.expect(0, "verify", path)
        self.assertIn(f"warning: {path}: ", result.stdout)
        self.assertIn("1 good, 0 bad, 1 with a warning", result.stdout)

    def test_names_are_escaped(self):
        self.put(b"nothing", "\x1b[31m\n.mlxkv")
        self.put(kv_file()[:-1], "fp", "\x1b]0;owned\x07.mlxkv")
        result = self.expect(1, "verify", self.dir)
        self.assertIn("\\x1b[31m\\x0a.mlxkv", result.stdout)
        self.assertIn("\\x1b]0;owned\\x07.mlxkv", result.stdout)
        found = json.loads(self.expect(1, "verify", "--json", self.dir).stdout)
        self.assertIn(
            self.path("fp", "\x1b]0;owned\x07.mlxkv"),
            [p["path"] for p in found["problems"]],
        )

    @unittest.skipIf(os.geteuid() == 0, "root may read everything")
    def test_what_may_not_be_read_failed(self):
        path = self.put(kv_file(), "a.mlxkv")
        os.chmod(path, 0)
        self.assertIn(f"failed: {path}: ", self.expect(1, "verify", self.dir).stdout)

    def test_the_bar_is_for_terminals_only(self):
        code, out, terminal = run_on_terminal("verify", self.zero)
        self.assertEqual(code, 0)
        self.assertIn("1 good, 0 bad", out)
        self.assertIn(b"] 100 %", terminal)
        code, out, terminal = run_on_terminal("verify", "--quiet", self.zero)
        self.assertEqual((code, out, terminal), (0, "", b""))


def run_on_terminal(*args):
    """stderr on a terminal of its own; gives exit code, stdout, and what was drawn."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [PROGRAM, *args], stdout=subprocess.PIPE, stderr=theirs, text=True
    )
    os.close(theirs)
    drawn = b""
    try:
        while select.select([ours], [], [], 60)[0]:
            piece = os.read(ours, 4096)
            if not piece:
                break
            drawn += piece
    except OSError as e:  # how Linux says that the other side is closed
        if e.errno != errno.EIO:
            raise
    finally:
        os.close(ours)
    out = process.communicate(timeout=60)[0]
    return process.returncode, out, drawn


class Repack(CliTest):
    def test_canonical_files_come_out_the_same(self):
        for path in self.golden:
            out = self.path("out.mlxkv")
            result = self.expect(0, "repack", "--force", path, out)
            self.assertEqual((result.stdout, result.stderr), ("", ""))
            self.assertEqual(sha256(out), sha256(path), path)
        for wanted in self.manifest:
            out = self.path("again.mlxkv")
            self.expect(
                0, "repack", "-f", os.path.join(self.reference, wanted["file"]), out
            )
            self.assertEqual(sha256(out), wanted["sha256"])
        self.assertEqual(sorted(os.listdir(self.dir)), ["again.mlxkv", "out.mlxkv"])

    def test_creation_time_zero_is_kept(self):
        path = self.put(kv_file(created=0), "in")
        self.expect(0, "repack", path, self.path("out"))
        header = header_of(read(self.path("out")))
        self.assertEqual(header["createdAt"], 0)

    def test_the_new_file_is_private(self):
        self.expect(0, "repack", self.zero, self.path("out"))
        mode = stat.S_IMODE(os.stat(self.path("out")).st_mode)
        self.assertEqual(mode, 0o600)

    def test_unknown_keys_are_lost_only_on_request(self):
        plain = (
            '{"formatVersion":3,"createdAt":5,"modelId":"m","tokens":[1,2],"caches":'
        ).encode()
        data = kv_file(created=5)
        canonical = plain + read_header(data).split(b'"caches":')[1]
        data = with_header(canonical, data[ALIGN:])
        cases = {
            "key": canonical.replace(b'"tokens"', b'"later":{"x":[1,"y"]},"tokens"'),
            "space": canonical.replace(b'"createdAt":', b'"createdAt": '),
            "spelling": canonical.replace(b'"m"', b'"\\u006d"'),
        }
        for name, text in cases.items():
            path = self.put(with_header(text, data[ALIGN:]), name)
            out = self.path("out")
            result = self.expect(1, "repack", path, out)
            self.assertIn(f"coldkv repack: {path}: ", result.stderr)
            self.assertIn("--drop-unknown", result.stderr)
            self.assertFalse(os.path.exists(out))
            self.expect(0, "repack", "--drop-unknown", path, out)
            self.assertEqual(read(out), data, name)
            os.unlink(out)

    def test_bytes_in_the_gaps_are_lost_only_on_request(self):
        self.expect(0, "repack", "--drop-unknown", self.put(kv_file(), "a"), self.path("b"))
        clean = read(self.path("b"))
        dirty = bytearray(clean)
        dirty[ALIGN + 16] = 1
        path = self.put(dirty, "in")
        self.assertIn(
            "--drop-unknown", self.expect(1, "repack", path, self.path("out")).stderr
        )
        self.expect(0, "repack", "--drop-unknown", path, self.path("out"))
        self.assertEqual(read(self.path("out")), clean)

    def test_a_bad_file_is_not_written_again(self):
        data = bytearray(read(self.zero))
        data[-1] ^= 1
        path = self.put(data, "in")
        for args in ([], ["--drop-unknown"]):
            result = self.expect(1, "repack", *args, path, self.path("out"))
            self.assertIn(f"coldkv repack: {path}: ", result.stderr)
        self.assertEqual(os.listdir(self.dir), ["in"])

    def test_an_existing_file_is_replaced_only_by_force(self):
        out = self.put(b"precious", "out")
        result = self.expect(1, "repack", self.zero, out)
        self.assertIn(f"coldkv repack: {out}: exists already", result.stderr)
        self.assertIn("--force", result.stderr)
        self.assertEqual(read(out), b"precious")
        self.expect(0, "repack", "--force", self.zero, out)
        self.assertEqual(sha256(out), sha256(self.zero))

    def test_in_and_out_may_not_be_the_same(self):
        path = self.put(read(self.zero), "in")
        os.symlink(path, self.path("link"))
        os.link(path, self.path("hard"))
        for out in (path, self.dir + "/./in", self.path("link"), self.path("hard")):
            result = self.expect(1, "repack", "--force", path, out)
            self.assertIn("is the file that is read", result.stderr)
        self.assertEqual(sha256(path), sha256(self.zero))

    def test_links_lead_to_the_file_that_is_written(self):
        real = self.put(b"old", "real")
        os.symlink(real, self.path("link"))
        os.symlink(self.zero, self.path("in"))
        self.expect(1, "repack", self.path("in"), self.path("link"))
        self.expect(0, "repack", "-f", self.path("in"), self.path("link"))
        self.assertTrue(os.path.islink(self.path("link")))
        self.assertEqual(sha256(real), sha256(self.zero))
        os.symlink(self.path("nowhere"), self.path("dangling"))
        result = self.expect(1, "repack", "-f", self.zero, self.path("dangling"))
        self.assertIn("leads nowhere", result.stderr)

    def test_out_may_be_relative_and_its_folder_must_exist(self):
        self.expect(0, "repack", self.zero, "out", cwd=self.dir)
        self.assertEqual(sha256(self.path("out")), sha256(self.zero))
        self.expect(1, "repack", self.zero, self.path("no", "out"))
        self.expect(1, "repack", self.zero, self.dir)
        self.expect(1, "repack", "-f", self.zero, self.dir + "/new/")
        self.expect(1, "repack", self.path("none"), self.path("x"))
        self.assertEqual(os.listdir(self.dir), ["out"])

    def test_a_terminated_run_leaves_nothing_behind(self):
        """The signal may come at any moment: then OUT is complete or not there."""
        for delay in (0.0, 0.002, 0.01):
            out = self.path("out")
            process = subprocess.Popen(
                [PROGRAM, "repack", self.golden[-3], out], stderr=subprocess.DEVNULL
            )
            time.sleep(delay)
            process.send_signal(signal.SIGTERM)
            code = process.wait(timeout=60)
            self.assertIn(code, (0, -signal.SIGTERM))
            self.assertIn(os.listdir(self.dir), ([], ["out"]))
            if os.path.exists(out):
                self.assertEqual(sha256(out), sha256(self.golden[-3]))
                os.unlink(out)


def read_header(data):
    size = struct.unpack_from("<I", data, 10)[0]
    return bytes(data[PREFIX_BYTES : PREFIX_BYTES + size])


class LostOutput(CliTest):
    def test_a_pipe_nobody_reads_is_a_failure_without_noise(self):
        for args in (
            ["inspect", "--json", "--tokens", self.golden[-3]],
            ["inspect", self.zero],
            ["verify", self.zero],
            ["help"],
        ):
            reader, writer = os.pipe()
            os.close(reader)
            try:
                result = run(*args, stdout=writer)
            finally:
                os.close(writer)
            self.assertEqual((result.returncode, result.stderr), (1, ""), args)

    @unittest.skipUnless(os.path.exists("/dev/full"), "needs /dev/full")
    def test_a_full_disk_is_a_failure_that_is_said(self):
        with open("/dev/full", "w", encoding="ascii") as full:
            for args in (["inspect", self.zero], ["verify", self.zero], ["--version"]):
                result = run(*args, stdout=full)
                self.assertEqual(result.returncode, 1)
                self.assertIn("could not be written", result.stderr)

    def test_a_closed_stdout_is_a_failure_and_no_file_gets_its_number(self):
        def close_out():
            os.close(1)

        result = run("inspect", self.zero, stdout=None, preexec_fn=close_out)
        self.assertEqual(result.returncode, 1)
        out = self.path("out")
        result = run("repack", self.zero, out, stdout=None, preexec_fn=close_out)
        self.assertEqual(result.returncode, 0)
        self.assertEqual(sha256(out), sha256(self.zero))


class OwnTools(unittest.TestCase):
    def test_the_hash_of_this_file_is_the_right_one(self):
        with open(os.path.join(DATA, "wyhash-vectors.json"), encoding="utf-8") as f:
            text = f.read()
        self.assertIn("0409638ee2bde459", text)
        known = {0: 0x0409638EE2BDE459, 1: 0xFDDEEEEA8CC2709C, 17: 0x904849BDD1E93C7C}
        known.update({16: 0x36B53F8551944DB0, 48: 0x3EC1B034DBE02BD7})
        known.update({97: 0x987658679C36FD56, 1000: 0x35D3357EA07A3EB6})
        known.update({5: 0xC828203113AD94A7, 2: 0xCA53C1E8890F395C})
        for size, value in known.items():
            data = bytes((31 * i + 7) % 256 for i in range(size))
            self.assertEqual(wyhash(data), value, size)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    PROGRAM, DATA = (os.path.abspath(p) for p in sys.argv[1:3])
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
