#!/usr/bin/env bash
# Formats every C file in place, with the version that the check asks (clang-format 14).
set -euo pipefail
. "$(dirname "$0")/lib.sh"
. "$ROOT/scripts/check-stages.sh"

cd "$ROOT"
format=$(clang_format_14) || die "there is no clang-format 14 (Debian 12: clang-format)"
c_files | xargs "$format" -i
