# shellcheck shell=bash
# Part of check.sh: the stages. Each prints to its log, adds lines "passed failed skipped" to
# the file it is given, and returns non-zero when something went wrong.

JOBS=$(jobs_wanted)

count() { # count FILE PASSED FAILED SKIPPED
    printf '%d %d %d\n' "$2" "$3" "$4" >>"$1"
}

# One thing that either passes or fails, such as a lint.
one() { # one COUNTS COMMAND...
    local counts=$1
    shift
    if "$@"; then
        count "$counts" 1 0 0
    else
        count "$counts" 0 1 0
        return 1
    fi
}

# Checks have to find libllama where there is a prebuilt one: a build that silently leaves
# out the server would pass for the wrong reason.
llama_mode() {
    if [ -n "${COLDKV_LLAMA:-}" ]; then
        printf '%s\n' "$COLDKV_LLAMA"
    elif prebuilt_llama_fits || [ -n "${COLDKV_LLAMA_ROOT:-}" ]; then
        echo ON
    else
        echo AUTO
    fi
}

configure() { # configure BUILD gcc|clang ARGUMENTS...
    local build=$1 cc=$2 cxx=g++
    [ "$cc" = gcc ] || cxx=clang++
    shift 2
    # -O2 -g without the usual -DNDEBUG: debug assertions take part in the tests.
    cmake -S "$ROOT" -B "$build" -G Ninja -DCMAKE_C_COMPILER="$cc" \
        -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_BUILD_TYPE=RelWithDebInfo \
        -DCMAKE_C_FLAGS_RELWITHDEBINFO="-O2 -g" \
        -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="-O2 -g" \
        -DCOLDKV_WERROR=ON -DCOLDKV_LLAMA="$(llama_mode)" \
        -DCOLDKV_LLAMA_ROOT="${COLDKV_LLAMA_ROOT:-}" "$@"
}

compile() { # compile BUILD: -k 0, so that one log shows all errors
    cmake --build "$1" -j "$JOBS" -- -k 0
}

# Runs ctest and counts its tests. Skipped ones are in ctest's sum of passed ones.
run_ctest() { # run_ctest COUNTS BUILD ARGUMENTS...
    local counts=$1 build=$2 out status=0 total=0 failed=0 skipped=0 line
    shift 2
    out=$build/ctest.out
    ctest --test-dir "$build" --output-on-failure --no-tests=error "$@" 2>&1 |
        tee "$out" || status=$?
    line=$(grep -E '^[0-9]+% tests passed, [0-9]+ tests failed out of [0-9]+' "$out")
    if [ -n "$line" ]; then
        failed=$(sed -E 's/.*passed, ([0-9]+) tests failed.*/\1/' <<<"$line")
        total=$(sed -E 's/.*out of ([0-9]+).*/\1/' <<<"$line")
        skipped=$(grep -cE '^ *[0-9]+/[0-9]+ Test +#.*\*\*\*Skipped' "$out")
    elif [ "$status" -ne 0 ]; then
        failed=1 total=1
    fi
    count "$counts" $((total - failed - skipped)) "$failed" "$skipped"
    return "$status"
}

# What holds a machine to itself (a model, a server) runs alone; the rest side by side.
test_beside() { run_ctest "$1" "$2" -j "$JOBS" -LE '^e2e$'; }

test_end_to_end() { # test_end_to_end COUNTS BUILD
    # grep -c, not -q: with -q ctest may die of a closed pipe, and that looks like "none".
    if [ "$(llama_mode)" != ON ] &&
        [ "$(ctest --test-dir "$2" -N -L '^e2e$' | grep -c 'Test *#')" -eq 0 ]; then
        say "skipped: end-to-end tests (no libllama)"
        count "$1" 0 0 1
        return 0
    fi
    run_ctest "$1" "$2" -j 1 -L '^e2e$'
}

stage_layers() {
    local status=0
    one "$1" scripts/check_layers.py --self-test || status=1
    one "$1" scripts/check_layers.py || status=1
    return $status
}

c_files() { # tracked ones; without git, all but what builds make
    if git -C "$ROOT" rev-parse --is-inside-work-tree >/dev/null 2>&1; then
        git ls-files -- '*.c' '*.h'
    else
        find . \( -name build -o -name deps \) -prune -o -name '*.[ch]' -print
    fi
}

# Versions of clang-format disagree with each other, so only 14 is asked.
clang_format_14() {
    local name
    for name in clang-format-14 clang-format; do
        have "$name" || continue
        case $("$name" --version) in
        *"version 14."*)
            printf '%s\n' "$name"
            return
            ;;
        esac
    done
    return 1
}

stage_format() {
    local format
    if ! format=$(clang_format_14); then
        say "skipped: there is no clang-format 14"
        count "$1" 0 0 1
        return 0
    fi
    c_files | one "$1" xargs "$format" --dry-run -Werror
}

stage_gcc() {
    local build=$ROOT/build/check-gcc status=0
    configure "$build" gcc && compile "$build" || return 1
    test_beside "$1" "$build" || status=1
    test_end_to_end "$1" "$build" || status=1
    return $status
}

stage_quick() {
    local build=$ROOT/build/check-gcc
    configure "$build" gcc && compile "$build" && run_ctest "$1" "$build" -j "$JOBS" -L '^unit$'
}

stage_clang() {
    local build=$ROOT/build/check-clang
    configure "$build" clang && compile "$build" && test_beside "$1" "$build"
}

stage_asan() {
    local build=$ROOT/build/check-asan status=0
    configure "$build" clang -DCOLDKV_SANITIZE=address,undefined && compile "$build" ||
        return 1
    export ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1:strict_string_checks=1
    export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
    test_beside "$1" "$build" || status=1
    test_end_to_end "$1" "$build" || status=1
    return $status
}

# Threads: everything but what loads libllama, which is not built for it.
stage_tsan() {
    local build=$ROOT/build/check-tsan COLDKV_LLAMA=OFF
    configure "$build" clang -DCOLDKV_SANITIZE=thread && compile "$build" || return 1
    export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1
    run_ctest "$1" "$build" -j "$JOBS" -LE '^(e2e|crash)$'
}

stage_bare() {
    local build=$ROOT/build/check-bare status=0 COLDKV_LLAMA=OFF
    configure "$build" gcc -DCMAKE_BUILD_TYPE=Release && compile "$build" || return 1
    test_beside "$1" "$build" || status=1
    test_end_to_end "$1" "$build" || status=1
    return $status
}

# What `make build` makes, run from elsewhere: it must find its libraries by itself.
builds_and_starts() { # builds_and_starts BUILD ARGUMENTS...
    local build=$1
    shift
    BUILD_DIR=$build COLDKV_LLAMA=$(llama_mode) "$ROOT/scripts/build.sh" "$@" &&
        (cd / && "$build/coldkv" --version && "$build/coldkv" --help >/dev/null)
}

# Shared: programs that reach for a symbol that is not public do not link.
stage_release() {
    local status=0
    one "$1" builds_and_starts "$ROOT/build/check-release" || status=1
    one "$1" builds_and_starts "$ROOT/build/check-shared" -DBUILD_SHARED_LIBS=ON || status=1
    return $status
}

# Library and program files of a build, one a line.
linted_files() { # linted_files BUILD
    python3 -c 'import json, os, sys
root, build = sys.argv[1:]
folders = tuple(os.path.join(root, d) + os.sep for d in ("src", "bridge", "server", "cli", "bench"))
for entry in json.load(open(build + "/compile_commands.json")):
    path = os.path.normpath(os.path.join(entry["directory"], entry["file"]))
    if path.startswith(folders) and "/testlib/" not in path:
        print(path)' "$ROOT" "$1" | sort -u
}

stage_tidy() {
    local build=$ROOT/build/check-clang
    configure "$build" clang >/dev/null && linted_files "$build" >"$build/linted" || return 1
    [ -s "$build/linted" ] || return 1
    one "$1" xargs -P "$JOBS" -n 1 clang-tidy --quiet -p "$build" <"$build/linted"
}

stage_cppcheck() {
    if ! have cppcheck; then
        say "skipped: there is no cppcheck"
        count "$1" 0 0 1
        return 0
    fi
    one "$1" cppcheck --enable=warning,portability,performance --error-exitcode=1 \
        --inline-suppr --quiet --std=c11 -j "$JOBS" -D__linux__ -I include -I src \
        src bridge server cli bench
}

# One target on a copy of its corpus: new inputs are for people to commit.
fuzz_one() { # fuzz_one COUNTS TARGET
    local name corpus dir status=0
    name=$(basename "$2")
    dir=$(mktemp -d)
    for corpus in "$ROOT/fuzz/corpus/$name" "$ROOT/fuzz/corpus/${name#fuzz_}"; do
        [ ! -d "$corpus" ] || cp -R "$corpus/." "$dir/"
    done
    say "fuzz $name: $(find "$dir" -type f | wc -l) inputs to begin with"
    one "$1" "$2" -max_total_time="${FUZZ_TIME:-60}" -timeout=10 -rss_limit_mb=2048 \
        -print_final_stats=1 -artifact_prefix="$LOGS/" "$dir" \
        >"$LOGS/$name.log" 2>&1 || status=1
    tail -n 25 "$LOGS/$name.log"
    rm -rf "$dir"
    return $status
}

stage_fuzz() {
    local build=$ROOT/build/check-fuzz status=0 target running=()
    # fuzzer-no-link: the library reports its branches too, or the fuzzer is blind.
    configure "$build" clang -DCOLDKV_FUZZ=ON -DCOLDKV_TESTS=OFF -DCOLDKV_LLAMA=OFF \
        -DCOLDKV_SANITIZE=address,undefined -DCMAKE_C_FLAGS=-fsanitize=fuzzer-no-link &&
        compile "$build" || return 1
    while read -r target; do
        fuzz_one "$1" "$target" &
        running+=($!)
        if [ ${#running[@]} -ge "$JOBS" ]; then
            wait "${running[0]}" || status=1
            running=("${running[@]:1}")
        fi
    done < <(find "$build" -type f -perm -u+x -name 'fuzz_*' ! -name '*.*' | sort)
    for target in "${running[@]}"; do
        wait "$target" || status=1
    done
    return $status
}
