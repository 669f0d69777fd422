#!/usr/bin/env bash
# That a program with another abseil than libgannet's is refused by CMake, by the compiler and by the
# linker, each naming the abseil; and that Gannet is built with an abseil that is part of the build.
# The other abseil is this system's headers under another name.
# another_abseil.sh SOURCE_DIR BUILD_DIR CXX_COMPILER
set -euo pipefail
source_dir=$1 build_dir=$2 cxx=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }
# says TEXT COMMAND...: the command must fail, with this text.
says() {
  local text=$1 output
  shift
  if output=$("$@" 2>&1); then fail "went through: $*"; fi
  # However CMake breaks its lines.
  tr -s ' \n' ' ' <<<"$output" | grep -qF "$text" || fail "'$text' is not in what $* said: $output"
}

prefix=$work/prefix
cmake --install "$build_dir" --prefix "$prefix" >/dev/null
built_with=$(sed -n 's/.*"\([a-z0-9_]* [0-9]*\)",$/\1/p' "$prefix/include/gannet/abseil.h")
[ -n "$built_with" ] || fail "no abseil in abseil.h"
libdir=$(dirname "$(find "$prefix" -name libgannet.so)")

# --- another abseil, as a project that fetched it has

mkdir "$work/other"
cp -r /usr/include/absl "$work/other/absl"
sed -i 's/^#define ABSL_OPTION_INLINE_NAMESPACE_NAME .*/#define ABSL_OPTION_INLINE_NAMESPACE_NAME another1/' \
  "$work/other/absl/base/options.h"
# absl_in_tree DIRECTORY INCLUDES: a project whose targets absl::... are not imported.
absl_in_tree() {
  mkdir -p "$1"
  cat >"$1/CMakeLists.txt" <<CMAKE
foreach(part config status statusor strings str_format flat_hash_map flat_hash_set inlined_vector)
  add_library(absl_\${part} INTERFACE)
  add_library(absl::\${part} ALIAS absl_\${part})
  target_include_directories(absl_\${part} INTERFACE \$<BUILD_INTERFACE:$2>)
endforeach()
CMAKE
}
absl_in_tree "$work/project/abseil" "$work/other"
cat >"$work/project/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.25)
project(consumer CXX)
add_subdirectory(abseil)
find_package(gannet REQUIRED)
CMAKE
says "libgannet was built with abseil $built_with, and this project uses abseil another1" \
  cmake -S "$work/project" -B "$work/project/build" -G Ninja -DCMAKE_PREFIX_PATH="$prefix"

cat >"$work/program.cc" <<'CODE'
#include <gannet/client.h>
int main() { return gannet::Client::Connect({"127.0.0.1:1"}).ok() ? 0 : 1; }
CODE
compile=("$cxx" -std=c++20 -fPIE -I"$work/other" -I"$prefix/include")
says "libgannet was built with abseil $built_with" \
  "${compile[@]}" -fsyntax-only "$work/program.cc"

# Headers of one build of Gannet, the library of another.
sed -i "s/\"$built_with\"/\"another1 ${built_with#* }\"/" "$prefix/include/gannet/abseil.h"
"${compile[@]}" -c "$work/program.cc" -o "$work/program.o"
says "gannet::abseil_another1_${built_with#* }::Options" \
  "$cxx" "$work/program.o" -L"$libdir" -lgannet -o "$work/program"

# --- Gannet's client as a part of a project, after its abseil, where little else is installed

pkgconfig=$(pkg-config --variable=pcfiledir libibverbs)
mkdir "$work/pkgconfig"
cp "$pkgconfig"/{libcrypto,libxxhash,libibverbs,librdmacm}.pc "$pkgconfig"/libnl*.pc "$work/pkgconfig"

mkdir "$work/parent"
absl_in_tree "$work/parent/abseil" /usr/include
cat >"$work/parent/CMakeLists.txt" <<CMAKE
cmake_minimum_required(VERSION 3.25)
project(parent C CXX)
add_subdirectory(abseil)
set(GANNET_SERVER OFF)
set(GANNET_TOOLS OFF)
add_subdirectory($source_dir gannet)
add_executable(program $work/program.cc)
target_link_libraries(program PRIVATE gannet::client)
CMAKE
hidden=()
for package in absl gflags nlohmann_json GTest; do
  hidden+=("-DCMAKE_DISABLE_FIND_PACKAGE_$package=ON")
done
PKG_CONFIG_LIBDIR=$work/pkgconfig cmake -S "$work/parent" -B "$work/parent/build" -G Ninja \
  -DCMAKE_CXX_COMPILER="$cxx" "${hidden[@]}" >/dev/null
cmake --build "$work/parent/build" --target common -- --quiet
echo "another abseil is refused, and one of the build is taken"
