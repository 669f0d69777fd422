# What a project that includes softverbs decides itself, for `cmake -S softverbs`.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)

# Warnings are no errors here: the compiler may be newer than the sources.
target_compile_options(softverbs_flags INTERFACE -Wall -Wextra -Wno-missing-field-initializers)

include(CheckIncludeFileCXX)
foreach(header infiniband/verbs.h rdma/rdma_cma.h)
  string(MAKE_C_IDENTIFIER "SOFTVERBS_HAVE_${header}" found)
  check_include_file_cxx(${header} ${found})
  if(NOT ${found})
    message(FATAL_ERROR "no <${header}>: install the headers of rdma-core (Debian: libibverbs-dev librdmacm-dev)")
  endif()
endforeach()
