#!/usr/bin/env bash
# One archive that installs llm-perf: the stripped program, manual pages, completions, our licences and those of others, and the
# SHA-256 of the archive beside it. The same commit and compiler give the same archive.
#
#   tools/release.sh                        into target/dist, for this machine
#   TARGET=aarch64-unknown-linux-gnu tools/release.sh    needs `rustup target add` and a C compiler for it (Debian:
#                                           gcc-aarch64-linux-gnu); the collector is compiled too. Pages come from a program for
#                                           this machine: release that first, or name one with HOST_PROGRAM
#   PROFILE=dev tools/release.sh            a quick trial
set -euo pipefail
cd "$(dirname "$0")/.."

cargo=${CARGO:-cargo}
profile=${PROFILE:-release}
out=${OUT:-target/dist}
host=$(rustc -vV | sed -n 's/^host: //p')
target=${TARGET:-$host}
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
name=llm-perf-$version-$target

built() {
    local folder=target
    [[ -n $1 ]] && folder=target/$1
    if [[ $profile == dev ]]; then echo "$folder/debug/llm-perf"; else echo "$folder/$profile/llm-perf"; fi
}

# The compiler of Debian and its like for another machine: it links the program and the collector, and compiles what is written in C.
tools=${target%%-*}-linux-gnu
if [[ $target != "$host" && $target == *-unknown-linux-gnu ]] && command -v "$tools-gcc" >/dev/null; then
    upper=$(tr 'a-z-' 'A-Z_' <<<"$target")
    linker=CARGO_TARGET_${upper}_LINKER
    export "$linker=${!linker:-$tools-gcc}"
    STRIP=${STRIP:-$tools-strip}
    # Matrix products in half precision are written for processors that have it (ARMv8.2: Grace, Graviton 2 and later).
    if [[ $target == aarch64-* ]]; then
        flags=CARGO_TARGET_${upper}_RUSTFLAGS
        export "$flags=${!flags:--C target-feature=+fp16}"
    fi
fi

# Without --target cargo keeps one build for itself and for the host, which a machine that builds for itself wants.
if [[ $target == "$host" ]]; then
    "$cargo" build --locked --package llm-perf --profile "$profile"
    program=$(built "")
    runs=$program
else
    "$cargo" build --locked --package llm-perf --profile "$profile" --target "$target"
    program=$(built "$target")
    # Pages and completions are the same for every machine, and are made by a program that runs here.
    runs=${HOST_PROGRAM:-$(built "")}
fi
if [[ ! -x $runs ]]; then
    echo "there is no llm-perf that runs here at $runs: release for this machine first, or name one with HOST_PROGRAM" >&2
    exit 1
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/$name/completions" "$out"
cp "$program" "$work/$name/llm-perf"
strip=${STRIP:-strip}
if command -v "$strip" >/dev/null; then
    "$strip" "$work/$name/llm-perf"
else
    echo "NOT STRIPPED: there is no $strip; STRIP names one for $target" >&2
fi
"$runs" man "$work/$name/man" >/dev/null
"$runs" completions bash >"$work/$name/completions/llm-perf.bash"
"$runs" completions zsh >"$work/$name/completions/_llm-perf"
"$runs" completions fish >"$work/$name/completions/llm-perf.fish"
cp README.md CHANGELOG.md LICENSE-MIT LICENSE-APACHE "$work/$name/"
python3 tools/licences.py "$target" >"$work/$name/THIRD-PARTY.md"
chmod 755 "$work/$name/llm-perf"

time=$(git log -1 --format=%ct 2>/dev/null || echo 0)
tar --create --directory "$work" --sort=name --mtime="@$time" --owner=0 --group=0 --numeric-owner --mode=u+rw,go+r,a-s "$name" |
    gzip --no-name -9 >"$out/$name.tar.gz"
(cd "$out" && sha256sum "$name.tar.gz" >"$name.tar.gz.sha256")
echo "$out/$name.tar.gz"
cat "$out/$name.tar.gz.sha256"
