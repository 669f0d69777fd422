# Finds out which abseil a build uses. A program and libgannet.so must use the same one: its types are
# in Gannet's interface, and a linker does not see a mismatch, as return types are not part of a
# function's symbol. Installed with the package, whose gannetConfig.cmake compares a program's abseil
# with Gannet's.

# gannet_describe_abseil(OUT): sets OUT to "NAMESPACE VERSION", the inline namespace and the number
# of the LTS release (0: none), of the target absl::config; to nothing if that is not to be found.
function(gannet_describe_abseil out)
  set(${out} "" PARENT_SCOPE)
  if(NOT TARGET absl::config)
    return()
  endif()
  get_target_property(directories absl::config INTERFACE_INCLUDE_DIRECTORIES)
  foreach(directory IN LISTS directories)
    # Targets that are not imported have one for the build and one for the installed package.
    string(REGEX REPLACE "^\\$<BUILD_INTERFACE:(.*)>$" "\\1" directory "${directory}")
    if(NOT EXISTS "${directory}/absl/base/options.h")
      continue()
    endif()
    file(STRINGS "${directory}/absl/base/options.h" line
         REGEX "^#define ABSL_OPTION_INLINE_NAMESPACE_NAME ")
    string(REGEX REPLACE "^.*NAME +([A-Za-z0-9_]+).*$" "\\1" namespace "${line}")
    set(version 0)
    file(STRINGS "${directory}/absl/base/config.h" line REGEX "^#define ABSL_LTS_RELEASE_VERSION ")
    if(line MATCHES "([0-9]+)")
      set(version ${CMAKE_MATCH_1})
    endif()
    set(${out} "${namespace} ${version}" PARENT_SCOPE)
    return()
  endforeach()
endfunction()
