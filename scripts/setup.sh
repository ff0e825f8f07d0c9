#!/usr/bin/env bash
# Lays down everything that building, serving or checking needs, and nothing twice.
#
#   scripts/setup.sh [--for build|serve|check]
#
# Debian packages are installed for commands and headers that are missing (as root; anyone
# else is shown the one line to run). libllama, its headers, the model and the client of the
# end-to-end tests go to deps/ (COLDKV_DEPS names another folder), each checked against
# scripts/pins.sh and put in place by one rename, so that an interrupted run leaves nothing
# that looks complete.
#
# From outside: COLDKV_LLAMA=OFF (do without libllama), COLDKV_LLAMA_ROOT=DIR (your own),
# COLDKV_MODEL=FILE (your own model).
set -euo pipefail
. "$(dirname "$0")/lib.sh"
. "$ROOT/scripts/pins.sh"

PURPOSE=build
while [ $# -gt 0 ]; do
    case $1 in
    --for) PURPOSE=${2:-} && shift ;;
    --for=*) PURPOSE=${1#--for=} ;;
    -h | --help) sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0" && exit 0 ;;
    *) die "unknown argument '$1' (usage: scripts/setup.sh [--for build|serve|check])" ;;
    esac
    shift
done
case $PURPOSE in
build | serve | check) ;;
*) die "--for takes build, serve or check, not '$PURPOSE'" ;;
esac

. "$ROOT/scripts/setup-packages.sh"
. "$ROOT/scripts/setup-fetch.sh"

install_packages
mkdir -p "$DEPS"
lock_deps
trap clean_up EXIT
clean_up
setup_llama
if [ "$PURPOSE" != build ] && [ "${COLDKV_LLAMA:-AUTO}" != OFF ]; then
    setup_model
fi
if [ "$PURPOSE" = check ]; then
    setup_client
fi
step "set-up for '$PURPOSE' is complete"
