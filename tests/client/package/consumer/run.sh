#!/usr/bin/env bash
# Installs Gannet to an empty prefix and uses it from there as an application does:
# run.sh SOURCE_DIR BUILD_DIR
set -euo pipefail
source_dir=$1 build_dir=$2
work=$(mktemp -d)
server_pid=
cleanup() {
  if [ -n "$server_pid" ]; then kill "$server_pid" 2>/dev/null || true; fi
  rm -rf "$work"
}
trap cleanup EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }

cmake --install "$build_dir" --prefix "$work/prefix" >"$work/install.log"
cmake -S "$source_dir/tests/client/package/consumer" -B "$work/build" -G Ninja \
  -DCMAKE_PREFIX_PATH="$work/prefix" -DEXAMPLES="$source_dir/client/example" >"$work/configure.log"
cmake --build "$work/build" >"$work/build.log" || { cat "$work/build.log"; fail "build"; }

for program in kvserver kvcli kvload softverbs-run; do
  [ -x "$work/prefix/bin/$program" ] || fail "no $program"
done

# A program that is not built with CMake.
export PKG_CONFIG_PATH=$work/prefix/$(cd "$work/prefix" && find . -name pkgconfig)
version=$(sed -n 's/^CMAKE_PROJECT_VERSION:STATIC=//p' "$build_dir/CMakeCache.txt")
[ "$(pkg-config --modversion gannet)" = "$version" ] || fail "the version that pkg-config knows"
read -ra flags <<<"$(pkg-config --cflags --libs gannet)"
g++ -std=c++20 "$source_dir/client/example/read_modify_write.cc" "${flags[@]}" \
  -Wl,-rpath,"$(pkg-config --variable=libdir gannet)" -o "$work/build/by_pkg_config" || fail "pkg-config"

# A program in C needs no C++ and no abseil.
read -ra flags <<<"$(pkg-config --cflags --libs gannet-c)"
[[ "${flags[*]}" != *absl* ]] || fail "abseil for C: ${flags[*]}"
for example in in_c event_loop_in_c; do
  gcc -std=c99 -Wall -Wextra -Wpedantic -Werror -D_POSIX_C_SOURCE=200809L \
    "$source_dir/client/example/$example.c" "${flags[@]}" \
    -Wl,-rpath,"$(pkg-config --variable=libdir gannet-c)" -o "$work/build/$example" || fail "$example"
done

# Below 1.0 the soname has the minor version, too.
soname=libgannet.so.${version%%.*}
[ "${version%%.*}" != 0 ] || soname=libgannet.so.${version%.*}
library=$(find "$work/prefix" -name "$soname")
[ -n "$library" ] || fail "no $soname"
dynamic=$(readelf -d "$library")
symbols=$(nm -D --defined-only -C "$library" | awk '{$1=$2=""; print}')
grep -q "SONAME.*\[$soname\]" <<<"$dynamic" || fail "soname"
grep -qE 'NEEDED.*(glog|gflags)' <<<"$dynamic" && fail "glog or gflags"
grep -q 'gannet::Client::Connect' <<<"$symbols" || fail "no Connect"
foreign=$(grep -vE '^ *(gannet::(Async)?Client::|gannet::RegisteredMemory::|gannet::Walker::|GANNET_0|GANNET_C_1|gannet_[a-z_]+@)' <<<"$symbols" || true)
[ -z "$foreign" ] || fail "symbols that are not ours: $foreign"
# Exactly the functions that the C headers declare.
declared=$(cat "$work/prefix/include/gannet/c/"*.h | sed 's|/\*.*\*/||' |
  grep -oE '^[a-z].*[ *]gannet_[a-z_]+\(' | grep -oE 'gannet_[a-z_]+\(' | tr -d '(' | sort)
exported=$(grep -oE '^ *gannet_[a-z_]+' <<<"$symbols" | tr -d ' ' | sort)
[ "$declared" = "$exported" ] || fail "declared and exported differ: $(diff <(echo "$declared") <(echo "$exported"))"
grep -rnE '#include.*(infiniband|rdma/|glog|gflags)' "$work/prefix/include" && fail "foreign header"

exec 3< <(exec "$work/prefix/bin/kvserver" --device=soft --listen=127.0.0.1:0 --memory=64M \
            --busy_poll_us=0 2>"$work/server.log")
server_pid=$!
read -r -t 60 _ endpoint _ <&3 || { cat "$work/server.log"; fail "kvserver"; }

expect() {
  local output
  output=$("$@" "$endpoint") || fail "$*"
  [ "$output" = "$(printf 'greeting = hello\nvisits = %s' "$visits")" ] || fail "$* said $output"
}
visits=3
expect "$work/prefix/bin/softverbs-run" "$work/build/on_any_device"
visits=6
expect "$work/prefix/bin/softverbs-run" "$work/build/by_pkg_config"
visits=9
expect "$work/prefix/bin/softverbs-run" "$work/build/in_c"
visits=12
expect "$work/prefix/bin/softverbs-run" "$work/build/c_by_cmake"
output=$(printf 'greeting\nshape\n' |
  timeout 60 "$work/prefix/bin/softverbs-run" "$work/build/event_loop_in_c" "$endpoint") ||
  fail "event_loop_in_c"
[ "$(sort <<<"$output")" = "$(printf 'greeting = hello\nshape: not found')" ] ||
  fail "event_loop_in_c said $output"

# The input stays open for longer than the server waits for a client that is silent.
loops="event_loop event_loop_asio"
for loop in $loops; do
  { printf '%s blue\n' "$loop"; sleep 2; printf '%s\nshape\n' "$loop"; } |
    timeout 60 "$work/build/$loop" "$endpoint" >"$work/$loop.out" || echo "failed" >>"$work/$loop.out" &
done
# shellcheck disable=SC2046 # several
wait $(jobs -p | grep -vx "$server_pid")
for loop in $loops; do
  [ "$(sort "$work/$loop.out")" = "$(printf '%s = blue\n%s is stored\nshape is absent' "$loop" "$loop")" ] ||
    fail "$loop said $(cat "$work/$loop.out")"
done

# prints OUTPUT COMMAND...
prints() {
  local wanted=$1 output
  shift
  output=$(timeout 60 "$@" "$endpoint") || fail "$*"
  [ "$output" = "$wanted" ] || fail "$* said $output"
}
prints 'alice: empty cart
the other request: FAILED_PRECONDITION
alice: three apples
no session' "$work/build/session_cache"
prints '99 of 100 users are known
user7 has 7.5, user99 has 0' "$work/build/feature_store"
prints 'the worker writes: done
the successor: DEADLINE_EXCEEDED
the successor writes: done
the worker in Gannet: ABORTED
the worker writes: refused' "$work/build/lock_service"
prints 'block 0: computed
block 1: computed
block 0: found
block 1: computed' "$work/build/kv_block_cache"
if [ -d "$build_dir/python/gannet" ]; then
  PYTHONPATH=$build_dir/python LD_LIBRARY_PATH=$(dirname "$library") prints 'alice: 3 of 5 requests allowed
bob: allowed' "$work/prefix/bin/softverbs-run" python3 -B "$source_dir/client/example/rate_limiter.py"
fi
for example in "$source_dir"/client/example/*.{cc,c,py}; do
  grep -q "$(basename "$example")" "$source_dir/client/example/README.md" || fail "README.md lacks $example"
done
echo "installed, found, linked, run"
