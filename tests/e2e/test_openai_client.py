#!/usr/bin/env python3
"""A client that people use, against the server: npm's openai, chat and streaming.

    test_openai_client.py PROGRAM MODEL CLIENT

CLIENT is the folder whose node_modules holds the package; the script client/chat.mjs
makes the calls and prints one JSON object.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile

from server_process import Server, facts

HERE = os.path.dirname(os.path.abspath(__file__))


def run(program, model, client, folder):
    server = Server(program, model, folder)
    try:
        # Modules are looked up from the script's own place.
        script = shutil.copy(os.path.join(HERE, "client", "chat.mjs"), folder)
        os.symlink(
            os.path.join(os.path.abspath(client), "node_modules"),
            os.path.join(folder, "node_modules"),
        )
        environment = dict(os.environ, COLDKV_URL=f"http://127.0.0.1:{server.port}/v1")
        environment["COLDKV_DOCUMENT"] = facts(0, 20)
        for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
            environment.pop(name, None)
        done = subprocess.run(
            ["node", script], env=environment, stdout=subprocess.PIPE, timeout=900, check=True
        )
        result = json.loads(done.stdout)
    finally:
        server.kill()
    assert result["version"] == "4.104.0", result
    assert result["models"] == 1, result
    assert result["text"] and result["text"] == result["streamed"], result
    assert result["finish"] in ("stop", "length"), result
    assert result["usage"]["completion_tokens"] > 0, result
    assert result["second_cached"] == result["usage"]["prompt_tokens"] - 1, result
    assert result["refused_status"] == 400 and "tools" in result["refused_message"], result
    assert result["aborted"] is True and result["after_abort"], result


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    folder = tempfile.mkdtemp(prefix="coldkv-e2e-")
    try:
        run(*sys.argv[1:4], folder)
    finally:
        shutil.rmtree(folder)
    print("1 passed, 0 failed")


if __name__ == "__main__":
    main()
