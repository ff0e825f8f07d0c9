# shellcheck shell=bash
# What the scripts share: where things are, how they speak, how sums are taken.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
DEPS=${COLDKV_DEPS:-$ROOT/deps}
case $DEPS in
/*) ;;
*) DEPS=$PWD/$DEPS ;;
esac
export COLDKV_DEPS=$DEPS

say() { printf '%s\n' "$*"; }
step() { printf '==> %s\n' "$*"; }
warn() { printf 'warning: %s\n' "$*" >&2; }
die() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}
have() { command -v "$1" >/dev/null 2>&1; }
mib() { awk -v b="$1" 'BEGIN { printf "%.1f MB", b / 1000000 }'; }

# How many jobs run side by side: COLDKV_JOBS, else the cores.
jobs_wanted() {
    printf '%s\n' "${COLDKV_JOBS:-$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)}"
}

sha256_of() {
    if have sha256sum; then
        sha256sum -- "$1" | cut -d' ' -f1
    else
        python3 -c 'import hashlib, sys
h = hashlib.sha256()
with open(sys.argv[1], "rb") as f:
    for block in iter(lambda: f.read(1 << 20), b""):
        h.update(block)
print(h.hexdigest())' "$1"
    fi
}

bytes_of() { wc -c <"$1" | tr -d ' '; }

# The model to run: the one named from outside, else what set-up laid down, else nothing.
model_path() {
    if [ -n "${COLDKV_MODEL:-}" ]; then
        printf '%s\n' "$COLDKV_MODEL"
    elif [ -r "$DEPS/models/current" ]; then
        printf '%s\n' "$DEPS/models/$(cat "$DEPS/models/current")"
    fi
}

# Whether this machine is one that the prebuilt libllama is made for.
prebuilt_llama_fits() { [ "$(uname -s)/$(uname -m)" = Linux/x86_64 ]; }
