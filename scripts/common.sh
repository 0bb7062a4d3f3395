# Shared by the scripts: where things are, and how the tools are built.
# shellcheck shell=bash
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# ATTNFUSE_BUILD_DIR builds elsewhere; the Python tools stay in build/venv.
build=$(realpath -m -- "${ATTNFUSE_BUILD_DIR:-$root/build}")
# shellcheck disable=SC2034  # the scripts that source this use it
venv="$root/build/venv"

# build_targets TARGET...: configures if need be and builds, silent unless
# there is something to do; on failure the log is printed.
build_targets() {
  local log
  log=$(mktemp)
  if [[ ! -f $build/build.ninja ]]; then
    echo "configuring in $build" >&2
    if ! (cd "$root" && cmake --preset release -B "$build") >"$log" 2>&1; then
      tail -n 60 "$log" >&2
      rm -f "$log"
      echo "the build could not be configured" >&2
      return 1
    fi
  fi
  if ! ninja -C "$build" -n "$@" 2>/dev/null | grep -q 'no work to do'; then
    echo "building $*" >&2
    if ! ninja -C "$build" "$@" >"$log" 2>&1; then
      tail -n 60 "$log" >&2
      rm -f "$log"
      echo "the build failed" >&2
      return 1
    fi
  fi
  rm -f "$log"
}
