#!/usr/bin/env python3
"""A long document, a killed server, the same question again.

    demo.py PROGRAM MODEL [--bench] [--threads N]

Without --bench: one conversation, told step by step. With --bench: a table of the time to
the first token at several prompt lengths, cold (the whole prompt evaluated), restored with
the entry in the page cache, and restored with none of it there.
"""

import argparse
import ctypes
import mmap
import os
import shutil
import statistics
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
from server_process import Server, facts  # noqa: E402


def resident_bytes(path):
    """How much of a file is in the page cache."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        view = mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE)
        pages = ctypes.create_string_buffer((size + mmap.PAGESIZE - 1) // mmap.PAGESIZE)
        start = ctypes.c_char.from_buffer(view)
        failed = libc.mincore(ctypes.addressof(start), size, pages)
        del start
        view.close()
        if failed:
            raise OSError(ctypes.get_errno(), "mincore")
    return sum(page & 1 for page in pages.raw) * mmap.PAGESIZE


def drop_from_page_cache(path):
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def mib(count):
    return f"{count / 2**20:.1f} MiB"


def demo(options, folder):
    def start():
        return Server(options.program, options.model, folder, threads=options.threads)

    question = [
        {"role": "user", "content": facts(0, 175) + "\nWhich warehouses are named above?"}
    ]
    server = start()
    try:
        print("1. A question about a long document; nothing is stored yet.")
        cold, first_reply, usage = server.timed(question, 48)
        print(f"   {usage['prompt_tokens']} prompt tokens, all evaluated:")
        print(f"   first token after {cold:.2f} s")
        server.wait_durable(1)
        entry = server.entries()[0]
        print(f"   stored in one file of {mib(os.path.getsize(entry))}")
        print("2. The server is killed (SIGKILL) and started again; the same question.")
        server.kill()
        server = start()
        restored, second_reply, usage = server.timed(question, 48)
        reused = usage["prompt_tokens_details"]["cached_tokens"]
        stats = server.wait_durable(1)
        print(f"   {reused} of {usage['prompt_tokens']} tokens reused,")
        print(f"   {mib(stats['restored_bytes'])} read, first token after {restored:.2f} s")
        same = first_reply == second_reply
        print(f"   the two replies are {'equal' if same else 'DIFFERENT'}")
        print("3. A follow-up in the same conversation, after another SIGKILL.")
        server.kill()
        server = start()
        turns = question + [
            {"role": "assistant", "content": first_reply},
            {"role": "user", "content": "And which record is the first one?"},
        ]
        follow_up, _, usage = server.timed(turns, 16)
        reused = usage["prompt_tokens_details"]["cached_tokens"]
        print(f"   {reused} of {usage['prompt_tokens']} tokens reused,")
        print(f"   first token after {follow_up:.2f} s")
        print()
        print(
            f"Time to first token: {cold:.2f} s cold, {restored:.2f} s restored:"
            f" {cold / restored:.0f} times as fast."
        )
        return 0 if same else 1
    finally:
        server.kill()


def bench_length(options, folder, records):
    """One cold run and `options.rounds` restored ones of each kind, by the server's trace."""
    question = [{"role": "user", "content": facts(0, records) + "\nSum it up."}]
    times = {"warm": [], "cold": []}

    def start():
        return Server(options.program, options.model, folder, threads=options.threads)

    server = start()
    try:
        server.chat(question, 2)
        server.wait_durable(1)
        (entry,) = server.entries()
        for _ in range(options.rounds):
            for state in times:
                # Nothing may be left of it in the server's own memory.
                server.kill()
                server = start()
                if state == "cold":
                    drop_from_page_cache(entry)
                    if resident_bytes(entry) > 0:
                        print("   (the page cache would not let go of the entry)")
                server.chat(question, 2)
                times[state].append(server.traces()[-1]["ttft_ms"])
    finally:
        server.kill()
    first = server.traces()[0]
    size = os.path.getsize(entry)
    base = first["ttft_ms"]
    warm, cold = (statistics.median(times[state]) for state in ("warm", "cold"))
    tokens = len(first["prompt_tokens"])
    print(
        f"| {tokens} | {size / 2**20:.0f} MiB | {base:.0f} ms | {warm:.0f} ms"
        f" ({100 * warm / base:.1f} %) | {cold:.0f} ms ({100 * cold / base:.1f} %) |"
    )


def bench(options):
    print("| prompt tokens | entry | evaluated | restored, in page cache | restored, from disk |")
    print("|---:|---:|---:|---:|---:|")
    for records in options.records:
        folder = tempfile.mkdtemp(prefix="coldkv-bench-", dir=options.dir)
        try:
            bench_length(options, folder, records)
        finally:
            shutil.rmtree(folder)
    print()
    print(
        f"Time from a request's turn to its first token, {options.threads} thread(s), median"
        f" of {options.rounds} restores in the same process; the disk's own and the host's"
        " caches are out of reach."
    )
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("program")
    parser.add_argument("model")
    parser.add_argument("--bench", action="store_true", help="the table instead of the story")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--dir", help="where the store is made (default: the temp folder)")
    parser.add_argument(
        "--records", type=int, nargs="+", default=[57, 115, 175, 350], help="document lengths"
    )
    options = parser.parse_args()
    if options.bench:
        return bench(options)
    folder = tempfile.mkdtemp(prefix="coldkv-demo-", dir=options.dir)
    try:
        return demo(options, folder)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
