#!/usr/bin/env bash
# Configures and builds a release in build/ (binary: build/coldkv). More arguments go to
# CMake, as in scripts/build.sh -DCOLDKV_TESTS=ON. BUILD_DIR names another folder.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

BUILD=${BUILD_DIR:-$ROOT/build}
ARGS=(-DCMAKE_BUILD_TYPE=Release -DCOLDKV_TESTS=OFF "-DCOLDKV_LLAMA=${COLDKV_LLAMA:-AUTO}")
if [ -n "${COLDKV_LLAMA_ROOT:-}" ]; then
    ARGS+=("-DCOLDKV_LLAMA_ROOT=$COLDKV_LLAMA_ROOT")
fi
cmake -S "$ROOT" -B "$BUILD" -G Ninja "${ARGS[@]}" "$@"
cmake --build "$BUILD" -j "$(jobs_wanted)"
if [ -x "$BUILD/coldkv" ]; then
    step "built $BUILD/coldkv"
fi
