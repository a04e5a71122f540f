# Sourced by ./survey and ./check: packages and build folders. Prints nothing if there is nothing to do.

# setup_packages build|quick|test: installs missing Debian/Ubuntu packages, as root or through sudo. If
# neither is possible, it prints the command to run. Packages that only some tests need are installed one
# by one; if one cannot be installed, those tests are skipped and counted as skipped.
setup_packages() {
    local wanted="gcc meson ninja-build pkg-config libopenmpi-dev openmpi-bin libyaml-dev" wished=
    [ "$1" = build ] || wanted="$wanted libcmocka-dev python3 python3-yaml python3-jsonschema clang-format"
    [ "$1" != test ] || wanted="$wanted clang libclang-rt-dev"
    # Only in a container or CI: elsewhere systemd would start the daemons of Slurm and Prometheus, and a
    # browser is large.
    if [ "$1" = test ] && [ "$(id -u)" -eq 0 ] && [ ! -d /run/systemd/system ]; then
        wished="mpich libmpich-dev slurm-wlm munge iproute2 chromium prometheus prometheus-node-exporter mandoc debhelper"
        wished="$wished lintian rpm lmod shellcheck qemu-user lld"
        case $(uname -m) in
        x86_64) wished="$wished gcc-aarch64-linux-gnu libc6-dev-arm64-cross" ;;
        aarch64) wished="$wished gcc-x86-64-linux-gnu libc6-dev-amd64-cross" ;;
        esac
    fi
    command -v dpkg-query >/dev/null || return 0 # not Debian: meson names what is missing
    local missing=() also=() package
    for package in $wanted; do
        setup_has "$package" || missing+=("$package")
    done
    for package in $wished; do
        setup_has "$package" || also+=("$package")
    done
    [ $((${#missing[@]} + ${#also[@]})) -eq 0 ] && return 0
    local sudo=
    if [ "$(id -u)" -ne 0 ]; then
        if ! sudo -n true 2>/dev/null && ! { [ -t 0 ] && command -v sudo >/dev/null; }; then
            echo "missing packages; as root, run:" >&2
            echo "  apt-get update && apt-get install -y ${missing[*]}" >&2
            exit 1
        fi
        sudo=sudo
    fi
    echo "installing: ${missing[*]} ${also[*]}" >&2
    local log
    log=$(mktemp)
    if ! { $sudo apt-get update -qq && setup_install "${missing[@]}"; } >"$log" 2>&1; then
        cat "$log" >&2
        rm -f "$log"
        echo "could not install: ${missing[*]}" >&2
        exit 1
    fi
    for package in "${also[@]}"; do
        setup_install "$package" >"$log" 2>&1 ||
            echo "could not install $package: the tests that need it are skipped" >&2
    done
    rm -f "$log"
}

setup_install() {
    [ $# -eq 0 ] || $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$@"
}

# True if the package is installed, or a replacement for it: a newer meson from elsewhere, another MPI.
setup_has() {
    case $1 in
    gcc) command -v gcc >/dev/null && return 0 ;;
    meson) command -v meson >/dev/null && return 0 ;;
    ninja-build) command -v ninja >/dev/null && return 0 ;;
    pkg-config) command -v pkg-config >/dev/null && return 0 ;;
    openmpi-bin) command -v mpirun >/dev/null && return 0 ;;
    libopenmpi-dev) pkg-config --exists ompi-c 2>/dev/null && return 0 ;;
    libyaml-dev) pkg-config --exists yaml-0.1 2>/dev/null && return 0 ;;
    python3) command -v python3 >/dev/null && return 0 ;;
    libcmocka-dev) pkg-config --exists cmocka 2>/dev/null && return 0 ;;
    clang) command -v clang >/dev/null && return 0 ;;
    clang-format) command -v clang-format >/dev/null && return 0 ;;
    libclang-rt-dev) setup_has_sanitizers && return 0 ;;
    mpich) command -v mpiexec.hydra >/dev/null && return 0 ;;
    libmpich-dev) pkg-config --exists mpich 2>/dev/null && return 0 ;;
    slurm-wlm) PATH=$PATH:/usr/sbin command -v slurmctld >/dev/null && return 0 ;;
    munge) PATH=$PATH:/usr/sbin command -v munged >/dev/null && return 0 ;;
    iproute2) PATH=$PATH:/usr/sbin:/sbin command -v ip >/dev/null && return 0 ;;
    chromium) command -v chromium chromium-browser google-chrome >/dev/null && return 0 ;;
    prometheus-node-exporter) command -v prometheus-node-exporter >/dev/null && return 0 ;;
    prometheus) command -v promtool >/dev/null && return 0 ;;
    mandoc) command -v mandoc >/dev/null && return 0 ;;
    lintian | shellcheck) command -v "$1" >/dev/null && return 0 ;;
    debhelper) command -v dh >/dev/null && return 0 ;;
    lld) command -v ld.lld >/dev/null && return 0 ;;
    rpm) command -v rpmbuild >/dev/null && return 0 ;;
    esac
    dpkg-query -W -f '${Status}' "$1" 2>/dev/null | grep -q 'ok installed'
}

# Whether clang links ASan. True if there is no clang yet: its package recommends the library.
setup_has_sanitizers() {
    command -v clang >/dev/null || return 0
    clang -fsanitize=address -x c - -o /dev/null <<<'int main(void) { return 0; }' 2>/dev/null
}

# setup_build SOURCE BUILD [meson options...]: configures once, builds what changed. Output is
# shown only if it fails.
setup_build() {
    [ -f "$2/build.ninja" ] || setup_configure "$@"
    setup_compile "$2"
}

# The same for ./check, but always configures: an earlier configuration does not know packages that were
# installed later.
setup_build_anew() {
    setup_configure "$@"
    setup_compile "$2"
}

# setup_configure SOURCE BUILD [meson options...]: configures a new build folder, or an existing one again
# with all options set to their defaults or to those given.
setup_configure() {
    local source=$1 build=$2 log
    shift 2
    log=$(mktemp)
    if [ ! -f "$build/build.ninja" ]; then
        echo "building in $(basename "$build")/ (once, a minute or a few)" >&2
        rm -rf "$build"
        # Debug data takes a sixth of the time. A build folder that somebody else configured keeps what it has.
        meson setup "$build" "$source" -Ddebug=false "$@" >"$log" 2>&1 || setup_failed "$log"
    else
        { meson configure --clearcache "$build" &&
            meson setup --reconfigure "$build" "$source" -Dcuda=auto -Dcuda-arch= -Dcuda-older=auto -Dcuda-older-arch= -Dmpi=auto -Dtests=auto -Dpackage=false -Dfuzz=false \
                -Db_sanitize=none \
                "$@"; } >"$log" 2>&1 || setup_failed "$log"
    fi
    rm -f "$log"
}

# setup_compile BUILD [target...]: leaves the compiler's warnings in BUILD/warnings.log.
setup_compile() {
    local build=$1 log
    shift
    log=$(mktemp)
    meson compile -C "$build" "$@" >"$log" 2>&1 || setup_failed "$log"
    grep -A 3 -E 'warning( #[0-9]+-D)?:' "$log" >"$build/warnings.log" || true
    rm -f "$log"
}

setup_failed() {
    tail -40 "$1" >&2
    rm -f "$1"
    echo "the build failed" >&2
    exit 1
}
