# Functions for tests of softverbs, and for tests of other projects that run on it.

# Runs a command in one of two network namespaces. Its exit code is 77 where there are none.
set(SOFTVERBS_TWO_HOSTS /usr/bin/python3 ${CMAKE_CURRENT_LIST_DIR}/../tests/support/two_hosts.py)

# softverbs_suites_of(OUT source ...): a filter of GoogleTest for the suites of these sources.
function(softverbs_suites_of out)
  set(filter)
  foreach(source ${ARGN})
    file(STRINGS ${source} lines REGEX "^TEST(_F|_P)?\\(")
    list(TRANSFORM lines REPLACE "^TEST[_FP]*\\(([A-Za-z0-9]+),.*" "\\1.*:*/\\1.*")
    list(APPEND filter ${lines})
  endforeach()
  list(REMOVE_DUPLICATES filter)
  list(JOIN filter ":" filter)
  set(${out} ${filter} PARENT_SCOPE)
endfunction()

# softverbs_test_entry(NAME command labels verbs timeout): a ctest entry that runs a command, on softverbs if `verbs`.
function(softverbs_test_entry name command labels verbs timeout)
  add_test(NAME ${name} COMMAND ${command})
  # Against tests that hang. On a machine that is busy with other work a test takes many times as long.
  if(NOT timeout)
    set(timeout 300)
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${timeout} LABELS "${labels}")
  if(verbs)
    # Both ends poll, so two such tests at once on two cores starve each other.
    set_tests_properties(${name} PROPERTIES PROCESSORS 2
                         ENVIRONMENT "LD_LIBRARY_PATH=${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/softverbs")
  endif()
endfunction()

# softverbs_test_again(NAME SUFFIX command ...): the entry NAME_SUFFIX, which is like NAME but for its command.
function(softverbs_test_again name suffix)
  add_test(NAME ${name}_${suffix} COMMAND ${ARGN})
  foreach(property TIMEOUT LABELS PROCESSORS ENVIRONMENT)
    get_test_property(${name} ${property} value)
    if(value)
      set_tests_properties(${name}_${suffix} PROPERTIES ${property} "${value}")
    endif()
  endforeach()
endfunction()

# softverbs_read_depth_test(NAME n [args ...]): runs the program NAME again, as NAME_of_n, on a device
# that allows n READs in flight per queue pair. READs go as packets, because READs that the initiator
# executes itself are never in flight.
function(softverbs_read_depth_test name depth)
  softverbs_test_again(${name} of_${depth} ${name} ${ARGN})
  set_property(TEST ${name}_of_${depth} APPEND PROPERTY
               ENVIRONMENT SOFTVERBS_MAX_RD_ATOMIC=${depth} SOFTVERBS_ACCELERATE=0)
endfunction()

# softverbs_two_hosts_test(NAME SUFFIX [OPTIONS ...] [ARGS ...]): runs the program NAME again, as
# NAME_SUFFIX, by two_hosts.py with these options.
function(softverbs_two_hosts_test name suffix)
  cmake_parse_arguments(ARG "" "" "OPTIONS;ARGS" ${ARGN})
  softverbs_test_again(${name} ${suffix} ${SOFTVERBS_TWO_HOSTS} ${ARG_OPTIONS} $<TARGET_FILE:${name}> ${ARG_ARGS})
  set_tests_properties(${name}_${suffix} PROPERTIES SKIP_RETURN_CODE 77)
endfunction()
