#!/usr/bin/env bash
# Starts the server with the model that set-up laid down and its cold tier. From outside:
# COLDKV_MODEL=FILE, PORT=8080, SSD_CACHE=DIR. More arguments go to `coldkv serve`.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

MODEL=$(model_path)
[ -n "$MODEL" ] || die "no model: run scripts/setup.sh --for serve, or set COLDKV_MODEL=FILE"
SSD_CACHE=${SSD_CACHE:-${XDG_CACHE_HOME:-${HOME:-$ROOT/build}/.cache}/coldkv}
PORT=${PORT:-8080}
COLDKV=${BUILD_DIR:-$ROOT/build}/coldkv
[ -x "$COLDKV" ] || die "$COLDKV is not there: run make build"
mkdir -p -m 0700 "$SSD_CACHE"

cat <<EOF
model      $MODEL
cold tier  $SSD_CACHE
address    http://127.0.0.1:$PORT   (stop: ctrl-C; what is being written is finished first)
try        curl http://127.0.0.1:$PORT/v1/chat/completions -H 'Content-Type: application/json' \\
             -d '{"messages":[{"role":"user","content":"What is a cold tier?"}],"max_tokens":64}'
EOF
exec "$COLDKV" serve --model "$MODEL" --host 127.0.0.1 --port "$PORT" \
    --ssd-cache "$SSD_CACHE" "$@"
