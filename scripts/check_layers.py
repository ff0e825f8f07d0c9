#!/usr/bin/env python3
"""Checks the rules of the source tree that no compiler checks.

    scripts/check_layers.py [--root DIR]     check a tree (default: this one)
    scripts/check_layers.py --self-test      plant one violation of each rule in a small
                                             tree and see that it is found

The rules: a lower layer never includes a higher one; programs and the bridge include public
headers and their own; llama.h and ggml stay in bridge/llama/ and server/engine*.c (and in
tests named after llama); public headers stand on the C standard alone and are short; above
io nobody calls the system; outside base nobody calls the C library's allocator; no file
names a place of somebody's own machine.
"""

import os
import re
import subprocess
import sys
import tempfile

LAYERS = ["base", "io", "tensor", "cache", "file", "store", "tier"]
OUTER = ["bridge", "cli", "server", "bench", "examples"]
C_HEADERS = set(
    "assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal "
    "stdalign stdarg stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string tgmath "
    "threads time uchar wchar wctype".split()
)
# Headers through which layers above io could reach the system.
SYSTEM = re.compile(r"^(unistd|fcntl|dirent|poll|spawn|signal|sys/.*|linux/.*)\.h$")
LLAMA = re.compile(r"^(llama|llama-cpp|gguf|ggml(-[a-z]+)?)\.h$")
# Third-party headers of the library, and the one folder that may use them.
THIRD = {"openssl": "src/base/", "jansson.h": None, "microhttpd.h": None}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
ALLOCATOR = re.compile(r"(?<![\w.>])(malloc|calloc|realloc|free|strdup|strndup)\s*\(")
HEADER_LINES = 300
SOURCE_LINES = 800
# Written in two halves, so that this file passes its own check.
PLACES = [
    a + b
    for a, b in (
        ("/wo", "rk/"),
        ("../sha", "red/"),
        ("/tmp/bu", "ild-"),
        ("/tmp/fe", "tch"),
        ("registry.n", "pmjs"),
        ("pypi.o", "rg"),
        ("pythonho", "sted"),
        ("deb.deb", "ian.org"),
    )
]


def tracked_files(root):
    """Files that belong to the tree: git's, or all but what a build makes."""
    run = subprocess.run(
        ["git", "-C", root, "ls-files", "-co", "--exclude-standard", "-z"],
        capture_output=True,
        check=False,
    )
    if run.returncode == 0 and os.path.exists(os.path.join(root, ".git")):
        names = run.stdout.decode().split("\0")
        return sorted(n for n in names if n and os.path.isfile(os.path.join(root, n)))
    found = []
    for folder, folders, names in os.walk(root):
        folders[:] = [d for d in folders if d not in (".git", "build", "deps")]
        found += [os.path.relpath(os.path.join(folder, n), root) for n in names]
    return sorted(found)


def without_comments(text):
    """C text with comments and strings blanked, lines kept."""
    pattern = r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
    return re.sub(pattern, lambda m: "\n" * m.group().count("\n"), text, flags=re.S)


def may_use_llama(path):
    """The bridge, the engine, and those tests that have llama in their name."""
    if path.startswith("tests/"):
        return "llama" in os.path.basename(path)
    if path.startswith("bridge/llama/"):
        return True
    return re.fullmatch(r"server/engine\w*\.[ch]", path) is not None


class Check:
    def __init__(self, root):
        self.root = root
        self.files = tracked_files(root)
        self.known = set(self.files)
        self.faults = []

    def fault(self, path, line, text):
        self.faults.append(f"{path}:{line}: {text}")

    def run(self):
        for path in self.files:
            with open(os.path.join(self.root, path), "rb") as f:
                data = f.read()
            if b"\0" in data:
                continue
            text = data.decode("utf-8", "replace")
            self.check_places(path, text)
            if path.endswith((".c", ".h")):
                self.check_source(path, text)
        return self.faults

    def check_places(self, path, text):
        for number, line in enumerate(text.split("\n"), 1):
            for place in PLACES:
                if place in line:
                    self.fault(path, number, f"names a place of one machine: {place}")

    def check_source(self, path, text):
        limit = HEADER_LINES if path.startswith("include/") else SOURCE_LINES
        lines = text.count("\n")
        if lines > limit:
            self.fault(path, lines, f"{lines} lines, at most {limit}")
        for number, line in enumerate(text.split("\n"), 1):
            match = INCLUDE.match(line)
            if match:
                self.check_include(path, number, match.group(1) == '"', match.group(2))
        if path.startswith("src/") and not path.startswith("src/base/"):
            for number, line in enumerate(without_comments(text).split("\n"), 1):
                match = ALLOCATOR.search(line)
                if match:
                    self.fault(path, number, f"calls {match.group(1)}; use base/alloc.h")

    def check_include(self, path, number, quoted, name):
        if LLAMA.match(name) and not may_use_llama(path):
            self.fault(path, number, f"{name} outside bridge/llama/ and server/engine*")
            return
        top = path.split("/")[0]
        if not quoted and (name.split("/")[0] in LAYERS or ".." in name):
            self.fault(path, number, f"<{name}>: only public headers in <>")
        elif name.startswith("coldkv/"):
            if "include/" + name not in self.known:
                self.fault(path, number, f"there is no include/{name}")
            elif quoted:
                self.fault(path, number, f"public headers are included as <{name}>")
        elif top == "include":
            if quoted or name.removesuffix(".h") not in C_HEADERS:
                self.fault(path, number, f"public header includes {name}")
        elif top == "src":
            self.check_library(path, number, quoted, name)
        elif top in OUTER and quoted:
            self.check_outer(path, number, name)

    def check_library(self, path, number, quoted, name):
        own = path.split("/")[1]
        if own not in LAYERS:
            self.fault(path, number, f"src/{own} is not a layer")
            return
        level = LAYERS.index(own)
        if quoted:
            other = name.split("/")[0]
            if other not in LAYERS or "src/" + name not in self.known:
                self.fault(path, number, f'"{name}" is not a file below src/')
            elif LAYERS.index(other) > level:
                self.fault(path, number, f"{own} includes {name} of a higher layer")
            return
        if level > LAYERS.index("io") and SYSTEM.match(name):
            self.fault(path, number, f"{own} reaches the system through <{name}>")
        third = THIRD.get(name.split("/")[0], "")
        if third is None or not path.startswith(third):
            self.fault(path, number, f"<{name}> does not belong here")

    def check_outer(self, path, number, name):
        """Quoted: a file of the own program's folder, never one of src/."""
        top = path.split("/")[0]
        own = "/".join(path.split("/")[: 2 if top == "bridge" else 1])
        beside = os.path.normpath(os.path.join(os.path.dirname(path), name))
        if beside not in self.known or not beside.startswith(own + "/"):
            self.fault(path, number, f'"{name}" is neither public nor in {own}/')


# For the self-test: a tree that passes, and what breaks it (path, text, words of the fault).
GOOD = {
    "include/coldkv/a.h": "#include <stddef.h>\n#include <coldkv/b.h>\n",
    "include/coldkv/b.h": "#include <stdint.h>\n",
    "include/coldkv/llama.h": "struct llama_context;\n",
    "src/base/x.h": "",
    "src/base/alloc.c": "#include <stdlib.h>\nvoid *f(void) { return malloc(1); }\n",
    "src/io/posix.c": '#include <fcntl.h>\n#include "base/x.h"\n#include "io/y.h"\n',
    "src/io/y.h": "",
    "src/file/r.h": "",
    "src/file/r.c": '#include "io/y.h"\n/* free() */\nvoid g(void) { a->free(p); }\n',
    "src/store/s.c": '#include "file/r.h"\n#include <coldkv/a.h>\n#include <pthread.h>\n',
    "bridge/llama/m.c": '#include <llama.h>\n#include "m.h"\n#include <coldkv/llama.h>\n',
    "bridge/llama/m.h": "",
    "server/engine.c": '#include <llama.h>\n#include <ggml-backend.h>\n#include "e.h"\n',
    "server/e.h": "#include <jansson.h>\n",
    "tests/unit/t.c": '#include "file/r.h"\n',
    "tests/unit/test_llama_x.c": "#include <gguf.h>\n",
}
BAD = [
    ("src/io/bad.c", '#include "file/r.h"\n', "higher layer"),
    ("src/base/bad.c", '#  include "io/y.h"\n', "higher layer"),
    ("src/store/bad.c", '#include "../server/e.h"\n', "not a file below"),
    ("src/file/bad.c", '#include "r.h"\n', "not a file below"),
    ("src/gadget/bad.c", "#include <stdio.h>\n", "not a layer"),
    ("src/store/bad.c", "#include <sys/stat.h>\n", "reaches the system"),
    ("src/file/bad.c", "#include <unistd.h>\n", "reaches the system"),
    ("src/file/bad.c", "#include <jansson.h>\n", "does not belong"),
    ("src/store/bad.c", "#include <openssl/evp.h>\n", "does not belong"),
    ("src/cache/bad.c", "void h(void *p) { free(p); }\n", "calls free"),
    ("src/cache/bad.c", "void *h(void) { return (malloc(3)); }\n", "calls malloc"),
    ("src/cache/bad.c", "#include <llama.h>\n", "outside bridge/llama/"),
    ("server/chat.c", '#include "llama.h"\n', "outside bridge/llama/"),
    ("cli/bad.c", "#include <ggml-cpu.h>\n", "outside bridge/llama/"),
    ("tests/e2e/bad.c", "#include <llama.h>\n", "outside bridge/llama/"),
    ("src/base/bad.c", "#include <io/y.h>\n", "only public"),
    ("cli/bad.c", "#include <base/x.h>\n", "only public"),
    ("cli/bad.c", "#include <../src/base/x.h>\n", "only public"),
    ("cli/bad.c", '#include "base/x.h"\n', "neither public"),
    ("cli/bad.c", '#include "../server/e.h"\n', "neither public"),
    ("examples/bad.c", '#include "../src/base/x.h"\n', "neither public"),
    ("bridge/llama/bad.c", '#include "io/y.h"\n', "neither public"),
    ("cli/bad.c", '#include "coldkv/a.h"\n', "included as <"),
    ("cli/bad.c", "#include <coldkv/none.h>\n", "there is no"),
    ("include/coldkv/bad.h", "#include <pthread.h>\n", "public header includes"),
    ("include/coldkv/bad.h", "#include <llama.h>\n", "outside bridge/llama/"),
    ("include/coldkv/bad.h", '#include "b.h"\n', "public header includes"),
    ("include/coldkv/bad.h", "\n" * 301, "at most 300"),
    ("src/base/bad.c", "\n" * 801, "at most 800"),
] + [("docs/bad.md", f"see {place}x\n", "one machine") for place in PLACES]


def write_tree(root, tree):
    for path, text in tree.items():
        full = os.path.join(root, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as f:
            f.write(text)


def self_test():
    wrong = 0
    with tempfile.TemporaryDirectory() as root:
        write_tree(root, GOOD)
        for fault in Check(root).run():
            print(f"self-test: a good tree is refused: {fault}")
            wrong += 1
        for path, text, words in BAD:
            write_tree(root, {path: text})
            faults = Check(root).run()
            if len(faults) != 1 or words not in faults[0] or not faults[0].startswith(path):
                print(f"self-test: {path} {text.strip()[:40]!r}: wanted '{words}': {faults}")
                wrong += 1
            os.remove(os.path.join(root, path))
    print(f"self-test: {len(BAD)} planted violations, {wrong} wrong")
    return 1 if wrong else 0


def main(args):
    if args == ["--self-test"]:
        return self_test()
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if len(args) == 2 and args[0] == "--root":
        root = args[1]
    elif args:
        print(__doc__, file=sys.stderr)
        return 2
    check = Check(root)
    faults = check.run()
    for fault in faults:
        print(fault)
    sources = sum(p.endswith((".c", ".h")) for p in check.files)
    print(f"{len(check.files)} files, {sources} of C: {len(faults)} violations")
    if sources == 0:
        print("nothing to check: is this the tree?")
        return 1
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
