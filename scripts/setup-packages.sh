# shellcheck shell=bash
# Part of setup.sh: commands and headers that come from the system. A package is asked for
# only when the command or header that it would bring is missing: installing npm beside a
# node of another origin, for one, breaks that node.

PACKAGES=() # Debian's names of what is missing
MISSING=()  # the same in words

need() { # need PACKAGE WHAT
    PACKAGES+=("$1")
    MISSING+=("$2")
}

need_command() { # need_command COMMAND PACKAGE
    have "$1" || need "$2" "$1"
}

need_library() { # need_library PKG-CONFIG-NAME HEADER PACKAGE
    if have pkg-config && pkg-config --exists "$1" 2>/dev/null; then
        return
    fi
    if have cc && printf '#include <%s>\n' "$2" | cc -E -x c - >/dev/null 2>&1; then
        return
    fi
    need "$3" "$2 (library $1)"
}

# The sanitizers' and libFuzzer's run time has a package of its own, per version of clang.
clang_major() {
    if have clang; then
        clang -dumpversion | cut -d. -f1
        return
    fi
    # shellcheck disable=SC1091
    case $(. /etc/os-release 2>/dev/null && echo "${VERSION_CODENAME:-}") in
    trixie) echo 19 ;;
    noble) echo 18 ;;
    *) echo 14 ;;
    esac
}

clang_links_fuzzers() {
    local out status=0
    have clang || return 1
    out=$(mktemp -d)
    printf '%s\n' '#include <stddef.h>' '#include <stdint.h>' \
        'int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n) { return d == 0 && n; }' \
        >"$out/f.c"
    clang -fsanitize=fuzzer,address,undefined "$out/f.c" -o "$out/f" >/dev/null 2>&1 ||
        status=1
    rm -rf "$out"
    return $status
}

list_missing() {
    PACKAGES=()
    MISSING=()
    need_command node nodejs
    need_command npm npm
    need_command python3 python3
    if ! have python3 || ! python3 -m pip --version >/dev/null 2>&1; then
        need python3-pip "pip (python3 -m pip)"
    fi
    need_command git git
    need_command make make
    need_command cmake cmake
    need_command ninja ninja-build
    need_command g++ g++
    need_command pkg-config pkg-config
    if have apt-get && [ ! -e /etc/ssl/certs/ca-certificates.crt ]; then
        need ca-certificates "certificates for downloads"
    fi
    need_library cmocka cmocka.h libcmocka-dev
    need_library jansson jansson.h libjansson-dev
    need_library libmicrohttpd microhttpd.h libmicrohttpd-dev
    need_library libcrypto openssl/evp.h libssl-dev
    if [ "$PURPOSE" = check ]; then
        need_command clang clang
        clang_links_fuzzers || need "libclang-rt-$(clang_major)-dev" "clang's sanitizers"
        need_command clang-tidy clang-tidy
        need_command clang-format clang-format
        need_command cppcheck cppcheck
    fi
}

say_missing() {
    local what
    for what in "${MISSING[@]}"; do
        say "  $what"
    done
}

install_packages() {
    list_missing
    if [ ${#PACKAGES[@]} -eq 0 ]; then
        return
    fi
    step "missing on this machine:"
    say_missing
    if ! have apt-get; then
        say "There is no apt-get here. Install these with your system's own packages;" >&2
        say "Debian calls them: ${PACKAGES[*]}" >&2
        exit 1
    fi
    if [ "$(id -u)" -ne 0 ]; then
        say "Not root, so nothing was installed. Run this line, then the same again:" >&2
        say "sudo apt-get update && sudo apt-get install -y ${PACKAGES[*]}" >&2
        exit 1
    fi
    step "apt-get install ${PACKAGES[*]}"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -q </dev/null ||
        warn "apt-get update failed; trying with the lists that are here"
    apt-get install -y -q --no-install-recommends "${PACKAGES[@]}" </dev/null ||
        die "apt-get could not install: ${PACKAGES[*]}"
    list_missing
    if [ ${#PACKAGES[@]} -ne 0 ]; then
        say_missing >&2
        die "still missing after apt-get install (see above)"
    fi
}
