#!/usr/bin/env python3
"""`coldkv bench` from outside: its two forms of output and its exit codes.

    test_bench.py PROGRAM [unittest arguments]

No figure is judged here: only that each is there, and fits the others.
"""

import json
import subprocess
import sys
import unittest

PROGRAM = ""
KEYS = [
    "bench", "case", "value", "unit", "limit", "ratio", "limitName", "ratioLow",
    "ratioHigh", "goal", "goalRatio", "pairs",
]  # fmt: skip


def run(*arguments):
    return subprocess.run(
        [PROGRAM, "bench", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


class Codec(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.result = run("--pairs=1", "codec", "--json", "--min-ms=0")
        cls.rows = json.loads(cls.result.stdout) if cls.result.returncode == 0 else []

    def test_ends_well_and_quietly(self):
        self.assertEqual((self.result.returncode, self.result.stderr), (0, ""))

    def test_rows_have_all_keys_in_order(self):
        self.assertGreater(len(self.rows), 20)
        for row in self.rows:
            self.assertEqual(list(row), KEYS)

    def test_cases_are_unique_and_each_has_its_second_row(self):
        names = [row["case"] for row in self.rows]
        self.assertEqual(len(names), len(set(names)))
        for first, second in zip(self.rows[::2], self.rows[1::2]):
            self.assertEqual(second["case"], first["case"] + " A/A")
            self.assertEqual(first["limitName"], "memcpy")
            self.assertEqual(second["limitName"], "itself")
            self.assertEqual(second["limit"], second["value"])

    def test_figures_are_positive_and_fit(self):
        for row in self.rows:
            self.assertEqual((row["bench"], row["unit"], row["pairs"]), ("codec", "GB/s", 1))
            for key in ("value", "limit", "ratio", "ratioLow", "ratioHigh"):
                self.assertGreater(row[key], 0, row)
            self.assertLessEqual(row["ratioLow"], row["ratio"])
            self.assertLessEqual(row["ratio"], row["ratioHigh"])
        for row in self.rows[::2]:  # with one pair the ratio is exactly that of the values
            self.assertAlmostEqual(row["ratio"], row["value"] / row["limit"])

    def test_goals_are_where_they_were_set(self):
        goals = {row["case"]: row["goal"] for row in self.rows if row["goal"] is not None}
        fast = [row["case"].split()[-1] for row in self.rows if row["case"].startswith("affine")]
        if "avx2" not in fast:
            self.assertEqual(goals, {})
            return
        self.assertEqual(
            goals,
            {
                "affine encode b4 g64 f32 avx2": 2,
                "affine encode b8 g64 f32 avx2": 2,
                "affine decode b4 g64 f32 avx2": 4,
                "affine decode b8 g64 f32 avx2": 4,
                "affine decode b4 g64 bf16 avx2": 4,
                "affine decode b8 g64 bf16 avx2": 4,
            },
        )
        for row in self.rows:
            if row["goal"] is None:
                self.assertIsNone(row["goalRatio"])
            else:
                self.assertAlmostEqual(row["goalRatio"], row["value"] / row["goal"])

    def test_every_codec_and_width_is_there(self):
        names = " ".join(row["case"] for row in self.rows)
        for part in ["memcpy", "wyhash", "f32", "bf16", "plain"]:
            self.assertIn(part, names)
        for bits in (2, 3, 4, 5, 6, 8):
            self.assertIn(f"affine encode b{bits} g64", names)
            self.assertIn(f"affine decode b{bits} g64", names)
        for width in ("k8", "v3", "k4", "v2"):
            self.assertIn(f"turboquant encode {width} d128", names)
            self.assertIn(f"turboquant decode {width} d128", names)

    def test_the_table_has_the_same_cases_aligned(self):
        result = run("codec", "--pairs", "1", "--min-ms", "0")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        header, *lines = result.stdout.rstrip("\n").split("\n")
        self.assertTrue(header.startswith("case "))
        column = header.index("ratio")
        self.assertEqual(len(lines), len(self.rows) // 2)
        for line, row in zip(lines, self.rows[::2]):
            self.assertTrue(line.startswith(row["case"] + " "), line)
            self.assertRegex(line[column:], r"^\d+\.\d{3} \(")


class Usage(unittest.TestCase):
    def refused(self, words, *arguments):
        result = run(*arguments)
        self.assertEqual((result.returncode, result.stdout), (2, ""), arguments)
        self.assertIn(words, result.stderr)
        self.assertIn("Try: coldkv bench", result.stderr)

    def test_help_teaches(self):
        for arguments in (["--help"], ["codec", "-h"]):
            result = run(*arguments)
            self.assertEqual(result.returncode, 0)
            for word in ("--json", "--pairs", "--min-ms", "--all", "--list", "A/A", "Examples"):
                self.assertIn(word, result.stdout)

    def test_list_names_and_explains(self):
        result = run("--list")
        self.assertEqual(result.returncode, 0)
        self.assertTrue(result.stdout.startswith("codec: "))
        self.assertIn("memcpy", result.stdout)

    def test_what_makes_no_sense_is_usage(self):
        self.refused("exactly one NAME")
        self.refused("exactly one NAME", "codec", "codec")
        self.refused("exactly one NAME", "--list", "codec")
        self.refused("no benchmark codek; there are: codec", "codek")
        self.refused("no benchmark \\x1b[1m", "\x1b[1m")
        self.refused("unknown option --jsno; did you mean --json?", "codec", "--jsno")
        self.refused("unknown option --pair; did you mean --pairs?", "codec", "--pair", "3")

    def test_numbers_are_held_to_their_range(self):
        for text in ("0", "1000", "-1", "x", "", "3x", " 3", "99999999999999999999"):
            self.refused("--pairs wants a number from 1 to 999", "codec", "--pairs", text)
            self.refused("--pairs wants a number from 1 to 999", "codec", "--pairs=" + text)
        self.refused("--pairs wants a number", "codec", "--pairs")
        self.refused("--min-ms wants a number from 0 to 60000", "codec", "--min-ms", "60001")


if __name__ == "__main__":
    PROGRAM = sys.argv[1]
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
