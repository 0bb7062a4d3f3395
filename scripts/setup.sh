#!/usr/bin/env bash
# Installs what AttnFuse is built and tested with. Idempotent, and silent when nothing is missing.
# Debian packages are installed with apt; Python tools go to build/venv from python/requirements.txt.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

packages=(
  llvm-22-dev libmlir-22-dev mlir-22-tools llvm-22-tools llvm-22
  clang-22 clang-format-22 clang-tidy-22 lld-22 libclang-rt-22-dev
  cmake ninja-build ccache git
  libzstd-dev libcurl4-openssl-dev libedit-dev zlib1g-dev libxml2-dev
  nlohmann-json3-dev libgtest-dev libgmock-dev libbenchmark-dev
  python3 python3-venv
)

installed() { dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null | grep -qx installed; }

missing=()
for package in "${packages[@]}"; do
  installed "$package" || missing+=("$package")
done

if ((${#missing[@]})); then
  if ! command -v apt-get >/dev/null; then
    echo "setup: apt-get was not found; AttnFuse is set up on Debian 12. Install by hand: ${missing[*]}" >&2
    exit 1
  fi
  sudo=()
  if ((EUID != 0)); then
    command -v sudo >/dev/null || { echo "setup: run as root, or install sudo; needed: ${missing[*]}" >&2; exit 1; }
    sudo=(sudo)
  fi
  echo "setup: installing ${missing[*]}" >&2
  log=$(mktemp)
  if ! { "${sudo[@]}" apt-get update -qq &&
    "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
    cat "$log" >&2
    echo "setup: the packages above could not be installed" >&2
    exit 1
  fi
  rm -f "$log"
fi

# A venv is remade when the pinned requirements change.
requirements="$root/python/requirements.txt"
venv="$root/build/venv"
stamp="$venv/.requirements.sha256"
wanted=$(sha256sum <"$requirements")
if [[ ! -f $stamp || $(<"$stamp") != "$wanted" ]]; then
  echo "setup: preparing Python tools in build/venv" >&2
  mkdir -p "$root/build"
  /usr/bin/python3 -m venv --clear "$venv"
  log=$(mktemp)
  if ! "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$requirements" >"$log" 2>&1; then
    cat "$log" >&2
    echo "setup: the Python packages of python/requirements.txt could not be installed" >&2
    exit 1
  fi
  rm -f "$log"
  printf '%s\n' "$wanted" >"$stamp"
fi
