#!/usr/bin/env bash
# A question about a long document, a killed server, the same question again: what did the
# cold tier save? Uses a fresh folder, removed at the end. Arguments go to scripts/demo.py.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

MODEL=$(model_path)
[ -n "$MODEL" ] || die "no model: run scripts/setup.sh --for serve, or set COLDKV_MODEL=FILE"
COLDKV=${BUILD_DIR:-$ROOT/build}/coldkv
[ -x "$COLDKV" ] || die "$COLDKV is not there: run make build"
have python3 || die "python3 is not there"
exec python3 "$ROOT/scripts/demo.py" "$COLDKV" "$MODEL" "$@"
