# One function per kind of target, so that flags, warnings and test environments are stated once.

find_program(GANNET_CCACHE ccache)
if(GANNET_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # As ccache(1) asks for with precompiled headers.
  set(CMAKE_C_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros ${GANNET_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_C_COMPILER_LAUNCHER})
endif()

# Programs are compiled as libraries are, so that one precompiled header serves both.
set(CMAKE_CXX_COMPILE_OPTIONS_PIE -fPIC)

# Flags of all our targets. Warnings are errors for our code only.
add_library(gannet_flags INTERFACE)
target_compile_options(gannet_flags INTERFACE -Wall -Wextra -Werror -Wno-missing-field-initializers
                       $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>)
# gcc collects its garbage again and again, as the precompiled headers alone fill the heap that it starts with.
target_compile_options(gannet_flags INTERFACE
  "$<$<CXX_COMPILER_ID:GNU>:SHELL:--param ggc-min-expand=1000 --param ggc-min-heapsize=1048576>")
# common/base/data_path_checks.h.
if(GANNET_SANITIZE OR CMAKE_BUILD_TYPE STREQUAL "Debug")
  target_compile_definitions(gannet_flags INTERFACE GANNET_CHECKS_DATA_PATHS)
endif()
if(GANNET_SANITIZE)
  target_compile_options(gannet_flags INTERFACE -fsanitize=${GANNET_SANITIZE} -fno-omit-frame-pointer
                         -fno-sanitize-recover=all)
  target_link_options(gannet_flags INTERFACE -fsanitize=${GANNET_SANITIZE})
endif()
# UBSan takes values that newer headers add to enums of C for wrong ones. Ours have an underlying type.
if(GANNET_SANITIZE MATCHES undefined)
  target_compile_options(gannet_flags INTERFACE -fno-sanitize=enum)
endif()
# AddressSanitizer itself reports what these three checks of UBSan find: null pointers and objects that are
# too small or gone. They take a quarter of the time to compile.
if(GANNET_SANITIZE MATCHES "address")
  target_compile_options(gannet_flags INTERFACE -fno-sanitize=null,object-size,vptr)
endif()

# What does no work for an operation, but once at the start, once a second, or for a person; and simulations. It is
# compiled with little optimization, in two thirds of the time. With that gcc 12 takes members of std::regex for
# uninitialized.
set(GANNET_COLD "$<$<AND:$<CXX_COMPILER_ID:GNU>,$<CONFIG:RelWithDebInfo>>:-Og;-Wno-maybe-uninitialized>")

# gannet_library(NAME [COLD] SOURCES a.cc a.h ... DEPS target ...): one static library a room, of all its folders.
function(gannet_library name)
  cmake_parse_arguments(ARG "COLD" "" "SOURCES;DEPS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC gannet_flags ${ARG_DEPS})
  gannet_common_headers(${name})
  gannet_sees_its_rows(${name} ${ARG_SOURCES})
  if(ARG_COLD)
    target_compile_options(${name} PRIVATE ${GANNET_COLD})
  endif()
endfunction()

# For sources in which every instruction counts for each operation. -O2 leaves short loops as loops, and
# position-independent code does not inline functions that could be replaced at load time; these
# options change both. Two passes of gcc 12 are off: loop distribution, which was seen to store a member
# before the copy of its whole struct that precedes it, and the early splitting of wide types, which
# makes XXH3's 128-bit products go through memory. With a precompiled header of other targets, gcc leaves some of these
# options out: a GET then takes 430 instructions instead of 386.
function(gannet_hot_sources)
  set_source_files_properties(
    ${ARGN} PROPERTIES
    SKIP_PRECOMPILE_HEADERS ON
    COMPILE_OPTIONS "-fno-semantic-interposition;$<$<CONFIG:RelWithDebInfo>:-O3>;\
$<$<CXX_COMPILER_ID:GNU>:-fno-tree-loop-distribution;-fno-split-wide-types>")
endfunction()

# gannet_program(NAME [COLD] SOURCES ... DEPS ...): an executable in build/<preset>/bin.
function(gannet_program name)
  cmake_parse_arguments(ARG "COLD" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE gannet_flags ${ARG_DEPS})
  gannet_common_headers(${name})
  gannet_sees_its_rows(${name} ${ARG_SOURCES})
  if(ARG_COLD)
    target_compile_options(${name} PRIVATE ${GANNET_COLD})
  endif()
endfunction()

# Headers of others that many sources include. Compiled once, they save a quarter of the time of a whole build.
# tests/tree/alone finds an #include that is missing because of them.
set(GANNET_COMMON_HEADERS
  <algorithm> <array> <atomic> <charconv> <chrono> <condition_variable> <cstdint> <cstring> <deque> <filesystem> <fstream>
  <functional> <map> <memory> <mutex> <optional> <random> <set> <span> <string> <string_view> <thread> <unordered_map>
  <utility> <vector> <absl/container/flat_hash_map.h> <absl/container/flat_hash_set.h> <absl/status/statusor.h>
  <absl/strings/str_cat.h> <absl/strings/str_format.h> <absl/strings/str_join.h> <absl/strings/str_split.h>
  <infiniband/verbs.h> <rdma/rdma_cma.h>)

# gcc 12 warns of its own std::string (PR 105651, PR 105329), and of a precompiled header it does not know that
# it is the library's. For optimized targets that use one.
set(GANNET_NOT_OF_LIBRARIES
  "$<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds;-Wno-restrict;-Wno-stringop-overflow;-Wno-stringop-overread>")

# gannet_headers(NAME HEADERS header ... DEPS target ...): the target NAME, whose precompiled headers others may use.
function(gannet_headers name)
  cmake_parse_arguments(ARG "" "" "HEADERS;DEPS" ${ARGN})
  set(source ${CMAKE_BINARY_DIR}/${name}.cc)
  file(CONFIGURE OUTPUT ${source} CONTENT "int main() {}\n")
  add_library(${name} STATIC EXCLUDE_FROM_ALL ${source})
  target_link_libraries(${name} PRIVATE gannet_flags absl::statusor absl::flat_hash_map ${ARG_DEPS})
  target_compile_options(${name} PRIVATE "$<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>")
  target_precompile_headers(${name} PRIVATE ${ARG_HEADERS})
endfunction()

# gannet_common_headers(TARGET): TARGET uses the common headers.
function(gannet_common_headers target)
  get_target_property(sources ${target} SOURCES)
  if("${sources}" MATCHES "\\.cc")
    if(NOT TARGET common_headers)
      gannet_headers(common_headers HEADERS ${GANNET_COMMON_HEADERS})
    endif()
    target_precompile_headers(${target} REUSE_FROM common_headers)
    target_compile_options(${target} PRIVATE ${GANNET_NOT_OF_LIBRARIES})
  endif()
endfunction()

# Makes test_headers, which nearly every test includes, in half of the time that a test takes to compile, and
# test_headers_optimized for tests that are optimized.
function(gannet_test_headers)
  foreach(target test_headers test_headers_optimized)
    gannet_headers(${target} HEADERS <gmock/gmock.h> <gtest/gtest.h> <absl/status/statusor.h> ${GANNET_COMMON_HEADERS}
                   DEPS GTest::gmock)
  endforeach()
  target_compile_options(test_headers PRIVATE ${GANNET_TEST_OPTIONS})
endfunction()

# Without optimization a test is compiled in half the time. What it tests is optimized all the same. A missing value
# that a test looks at is a failure, not undefined.
set(GANNET_TEST_OPTIONS -O0 -D_GLIBCXX_ASSERTIONS)

# It links a test in a fifth of the time. Not programs whose instructions are counted.
find_program(GANNET_LLD ld.lld)

# gannet_as_test(TARGET OPTIMIZED): compiles and links TARGET as a test.
function(gannet_as_test target optimized)
  if(optimized)
    target_precompile_headers(${target} REUSE_FROM test_headers_optimized)
    target_compile_options(${target} PRIVATE ${GANNET_NOT_OF_LIBRARIES})
  else()
    target_compile_options(${target} PRIVATE ${GANNET_TEST_OPTIONS})
    target_precompile_headers(${target} REUSE_FROM test_headers)
    if(GANNET_LLD)
      target_link_options(${target} PRIVATE -fuse-ld=lld)
    endif()
  endif()
endfunction()

# gannet_test_library(NAME SOURCES ... DEPS ...): a static library that tests share.
function(gannet_test_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_library(${name} STATIC EXCLUDE_FROM_ALL ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC gannet_flags ${ARG_DEPS} PRIVATE GTest::gmock)
  gannet_as_test(${name} OFF)
endfunction()

# gannet_test(NAME SOURCES ... DEPS ... LABELS ... [PROGRAM program] [VERBS] [TIMEOUT s]
# [CASES_WITH_THREADS filter]): a ctest entry, and its GoogleTest program of the same name. Tests that link the same
# libraries share a PROGRAM, as headers take most of the time of compiling one; an entry runs the suites of its SOURCES.
# VERBS runs it on softverbs. Labels select sets: unit, model, verbs, simulation, integration, conformance, slow. The
# preset tsan runs only CASES_WITH_THREADS, a filter of GoogleTest.
function(gannet_test name)
  cmake_parse_arguments(ARG "VERBS" "PROGRAM;TIMEOUT;CASES_WITH_THREADS" "SOURCES;DEPS;LABELS" ${ARGN})
  # A unit test whose sources do not even speak of threads has only one.
  if("${ARG_LABELS}" MATCHES "unit" AND NOT ARG_VERBS)
    set(about_threads)
    foreach(source ${ARG_SOURCES})
      file(STRINGS ${source} lines REGEX "[Tt]hread|[Ss]erver[^/_]")
      list(APPEND about_threads ${lines})
    endforeach()
    if(NOT about_threads)
      list(APPEND ARG_LABELS one_thread)
    endif()
  endif()
  # What ./dev test and ./dev check leave out need not be built for them. Under a sanitizer it is not even registered.
  set(left_out OFF)
  if((GANNET_SANITIZE AND "${ARG_LABELS}" MATCHES "conformance|model|slow|figures")
     OR (GANNET_SANITIZE STREQUAL "thread" AND "${ARG_LABELS}" MATCHES "one_thread|simulation")
     OR (NOT GANNET_SANITIZE AND "${ARG_LABELS}" MATCHES "vm|figures|slow|bench"))
    set(left_out ON)
  endif()

  set(program ${name})
  set(filter)
  if(ARG_PROGRAM)
    set(program ${ARG_PROGRAM})
    softverbs_suites_of(filter ${ARG_SOURCES})
    if(left_out AND GANNET_SANITIZE)
      return()
    endif()
  endif()
  if(ARG_CASES_WITH_THREADS AND GANNET_SANITIZE STREQUAL "thread")
    set(filter ${ARG_CASES_WITH_THREADS})
  endif()
  if(NOT TARGET ${program})
    gannet_test_program(${program} "${ARG_LABELS}")
  endif()
  target_sources(${program} PRIVATE ${ARG_SOURCES})
  target_link_libraries(${program} PRIVATE ${ARG_DEPS} GTest::gmock GTest::gtest_main)
  if(ARG_VERBS)
    add_dependencies(${program} softverbs)
  endif()
  if(left_out AND GANNET_SANITIZE)
    set_target_properties(${program} PROPERTIES EXCLUDE_FROM_ALL TRUE)
  elseif(NOT left_out)
    add_dependencies(checked ${program})
  endif()

  set(command ${program})
  if(filter)
    list(APPEND command "--gtest_filter=${filter}")
  endif()
  gannet_test_entry(${name} "${command}" "${ARG_LABELS}" "${ARG_VERBS}" "${ARG_TIMEOUT}")
  if(filter)
    set_tests_properties(${name} PROPERTIES FAIL_REGULAR_EXPRESSION "Running 0 tests")
  endif()
endfunction()

# gannet_device_tests(): compiles the tests of softverbs/tests as our own, and builds them only for device_tests: they are
# left out while they are proven. What tests what our own tests use, too, is one of ours.
function(gannet_device_tests)
  get_property(targets GLOBAL PROPERTY SOFTVERBS_TEST_TARGETS)
  foreach(target ${targets})
    get_target_property(optimized ${target} SOFTVERBS_OPTIMIZED)
    gannet_as_test(${target} ${optimized})
  endforeach()
  get_property(programs GLOBAL PROPERTY SOFTVERBS_TEST_PROGRAMS)
  foreach(program ${programs})
    set_target_properties(${program} PROPERTIES EXCLUDE_FROM_ALL TRUE)
    if(program STREQUAL "test_support_test")
      add_dependencies(checked ${program})
    else()
      add_dependencies(device_tests ${program})
    endif()
  endforeach()
endfunction()

# gannet_tests(PROGRAM [PREFIX prefix_] TESTS t ... DEPS ... LABELS ... [VERBS] [TIMEOUT s]): for each t_test.cc an
# entry prefix_t_test of that program.
function(gannet_tests program)
  cmake_parse_arguments(ARG "VERBS" "PREFIX;TIMEOUT" "TESTS;DEPS;LABELS" ${ARGN})
  set(verbs)
  if(ARG_VERBS)
    set(verbs VERBS)
  endif()
  foreach(test ${ARG_TESTS})
    gannet_test(${ARG_PREFIX}${test}_test SOURCES ${test}_test.cc PROGRAM ${program} DEPS ${ARG_DEPS} LABELS ${ARG_LABELS}
                TIMEOUT ${ARG_TIMEOUT} ${verbs})
  endforeach()
endfunction()

# gannet_test_program(NAME labels): a GoogleTest program without sources yet.
function(gannet_test_program name labels)
  add_executable(${name})
  target_link_libraries(${name} PRIVATE gannet_flags)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  set(optimized OFF)
  if("${labels}" MATCHES "model|simulation" OR name IN_LIST GANNET_OPTIMIZED_TESTS)
    set(optimized ON)
  endif()
  gannet_as_test(${name} ${optimized})
endfunction()

# gannet_test_entry(NAME command labels verbs timeout): a ctest entry that runs a test program.
function(gannet_test_entry name command labels verbs timeout)
  softverbs_test_entry(${name} "${command}" "${labels}" "${verbs}" "${timeout}")
  # Without TZ, mktime frees and copies the name of the time zone at every line of the log, under a
  # lock of the C library that ThreadSanitizer does not see.
  if(GANNET_SANITIZE)
    set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT TZ=UTC0)
  endif()
  # A race shows in a part of the operations that a test does without a sanitizer.
  if(GANNET_SANITIZE STREQUAL "thread")
    set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT GANNET_TEST_SLOWNESS=4)
  endif()
endfunction()

# All programs whose instructions are counted.
add_custom_target(figures)

# gannet_instructions(NAME TARGET test FILTER gtest-filter FUNCTION glob OPERATIONS n MAX m [OF what] [CALLEES]):
# a ctest entry that counts instructions of a gannet_test program (tools/figures/instructions): its
# own without verbs calls, or with OF those of verbs calls, or the total. CALLEES leaves out what the
# function executes itself. Fails above MAX per operation. Only in builds where that means something:
# optimised, no sanitizer.
function(gannet_instructions name)
  cmake_parse_arguments(ARG "CALLEES" "TARGET;FILTER;FUNCTION;OPERATIONS;MAX;OF" "" ${ARGN})
  if(GANNET_SANITIZE OR CMAKE_BUILD_TYPE STREQUAL "Debug")
    return()
  endif()
  if(NOT ARG_OF)
    set(ARG_OF own)
  endif()
  set(callees)
  if(ARG_CALLEES)
    set(callees --callees)
  endif()
  add_test(NAME ${name}
           COMMAND ${PROJECT_SOURCE_DIR}/tools/figures/instructions --function ${ARG_FUNCTION}
                   ${callees} --operations ${ARG_OPERATIONS} --max ${ARG_MAX} --of ${ARG_OF} --
                   $<TARGET_FILE:${ARG_TARGET}> --gtest_filter=${ARG_FILTER})
  add_dependencies(figures ${ARG_TARGET})
  set_tests_properties(${name} PROPERTIES TIMEOUT 300 LABELS figures PROCESSORS 2
                       ENVIRONMENT "LD_LIBRARY_PATH=${CMAKE_BINARY_DIR}/lib/softverbs")
endfunction()
