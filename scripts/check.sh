#!/usr/bin/env bash
# All checks, or the stages that are named:
#
#   scripts/check.sh [STAGE...]
#
#   layers    rules of the tree that no compiler checks, and that the check finds breaches
#   format    clang-format 14 on every C file
#   gcc       gcc, optimised, asserts on: all tests
#   clang     clang: all tests but the end-to-end ones
#   asan      clang with address and undefined behaviour sanitizers: all tests
#   tsan      clang with the thread sanitizer: all tests that need no libllama
#   bare      without libllama, as released (NDEBUG): all tests that remain
#   release   the builds that users make, static and shared
#   tidy      clang-tidy on src, bridge, server, cli, bench
#   cppcheck  cppcheck on the same
#   fuzz      each fuzz target for FUZZ_TIME seconds (60)
#   quick     one build with gcc and its unit tests (not part of all)
#
# A failing stage stops none of the others; the exit status is 1 if any failed. Builds and
# logs lie in build/check-*/ and build/check-logs/. Set-up is scripts/setup.sh --for check.
set -uo pipefail
. "$(dirname "$0")/lib.sh"
. "$ROOT/scripts/check-stages.sh"

ALL=(layers format gcc clang asan tsan bare release tidy cppcheck fuzz)
case ${1:-} in
-h | --help)
    sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0"
    exit 0
    ;;
esac
STAGES=("$@")
[ ${#STAGES[@]} -gt 0 ] || STAGES=("${ALL[@]}")
for stage in "${STAGES[@]}"; do
    case " ${ALL[*]} quick " in
    *" $stage "*) ;;
    *) die "no stage '$stage' (there are: ${ALL[*]} quick)" ;;
    esac
done

cd "$ROOT" || exit 1
LOGS=$ROOT/build/check-logs
mkdir -p "$LOGS"
if have flock; then
    exec 8>"$ROOT/build/.check.lock"
    flock -n 8 || die "another check is at work in $ROOT/build"
fi
COLDKV_MODEL=$(model_path)
export COLDKV_MODEL
export LC_ALL=C CTEST_PARALLEL_LEVEL=1

# A stage runs in a process of its own; what it counted it leaves in a file.
run_stage() { # run_stage NAME
    local log=$LOGS/$1.log counts=$LOGS/$1.counts status=0
    local begin=$SECONDS passed=0 failed=0 skipped=0 p f s
    : >"$counts"
    step "$1"
    ("stage_$1" "$counts") >"$log" 2>&1 </dev/null 8>&- || status=$?
    while read -r p f s; do
        passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    done <"$counts"
    # A stage that failed or counted nothing before it could count is one failure.
    if [ "$failed" -eq 0 ] &&
        { [ "$status" -ne 0 ] || [ $((passed + skipped)) -eq 0 ]; }; then
        failed=1
    fi
    if [ "$failed" -ne 0 ]; then
        # ninja -k 0 goes on after an error: without its progress the errors are near the end.
        grep -vE '^\[[0-9]+/[0-9]+\] (Building|Linking)|warnings? generated\.$' "$log" |
            tail -n "${CHECK_TAIL:-80}" | sed 's/^/    | /'
        say "    FAILED: the whole log is build/check-logs/$1.log"
    fi
    TOTAL_PASSED=$((TOTAL_PASSED + passed))
    TOTAL_FAILED=$((TOTAL_FAILED + failed))
    TOTAL_SKIPPED=$((TOTAL_SKIPPED + skipped))
    TABLE+=$(printf '%-10s %7d %7d %8d %6d s' "$1" "$passed" "$failed" "$skipped" \
        $((SECONDS - begin)))$'\n'
    say "    $passed passed, $failed failed, $skipped skipped, $((SECONDS - begin)) s"
}

TOTAL_PASSED=0
TOTAL_FAILED=0
TOTAL_SKIPPED=0
TABLE=
for stage in "${STAGES[@]}"; do
    run_stage "$stage"
done

say
printf '%-10s %7s %7s %8s %8s\n' stage passed failed skipped time
printf '%s' "$TABLE"
say
if [ "$TOTAL_SKIPPED" -ne 0 ]; then
    say "$TOTAL_SKIPPED skipped: see 'skipped' in build/check-logs/"
fi
say "$TOTAL_PASSED passed, $TOTAL_FAILED failed"
[ "$TOTAL_FAILED" -eq 0 ]
