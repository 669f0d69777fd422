# What only the .debs have, and what CPack needs to know of them.
#
# The files of this part are in no plain `cmake --install` (EXCLUDE_FROM_ALL): they name /usr and
# /etc, and a plain installation must leave both alone. The paths are relative to /usr all the same,
# and stage.cmake moves usr/etc to where it belongs.
set(GANNET_PACKAGER "Gannet maintainers <maintainers@gannet.invalid>" CACHE STRING
    "Name and address of whoever makes the packages")

set(library libgannet${GANNET_SOVERSION})  # the package's name has the soname, as Debian wants it
# A package more is an install component more and a describe().
set(packages gannet-server gannet-tools libgannet libgannet-dev softverbs)
if(TARGET python_package)
  list(APPEND packages python3-gannet)
endif()

# --- files

# The heading of the latest version in CHANGELOG.md: "## 0.1.0 (2026-11-22)".
file(STRINGS ${PROJECT_SOURCE_DIR}/CHANGELOG.md heading REGEX "^## " LIMIT_COUNT 1)
if(NOT heading MATCHES "^## ([0-9.]+) \\(([0-9-]+)\\)$" OR NOT CMAKE_MATCH_1 STREQUAL PROJECT_VERSION)
  message(FATAL_ERROR "CHANGELOG.md begins with \"${heading}\", but this is version ${PROJECT_VERSION}")
endif()
execute_process(COMMAND date -R -u -d ${CMAKE_MATCH_2} OUTPUT_VARIABLE changelog_date
                OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
configure_file(debian/changelog.in changelog.Debian @ONLY)
configure_file(debian/shlibs.in shlibs @ONLY)
# CMake reads its CHANGELOG.md and its version at configure time.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/CHANGELOG.md)

function(install_for_package component destination)
  install(FILES ${ARGN} DESTINATION ${destination} COMPONENT ${component} EXCLUDE_FROM_ALL)
endfunction()
foreach(component ${packages})
  string(REGEX REPLACE "^libgannet$" ${library} name ${component})
  set(doc ${CMAKE_INSTALL_DATADIR}/doc/${name})
  install_for_package(${component} ${doc} debian/copyright ${CMAKE_CURRENT_BINARY_DIR}/changelog.Debian)
  install(FILES ${PROJECT_SOURCE_DIR}/CHANGELOG.md RENAME changelog DESTINATION ${doc}
          COMPONENT ${component} EXCLUDE_FROM_ALL)
endforeach()
install_for_package(gannet-server lib/systemd/system systemd/kvserver.service)
install_for_package(gannet-tools lib/systemd/system systemd/gannet-proxy.service)
install_for_package(gannet-server lib/sysusers.d systemd/gannet-server.conf)
install_for_package(gannet-server etc/gannet ${CMAKE_CURRENT_BINARY_DIR}/kvserver.conf)

# --- CPack

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT ${GANNET_PACKAGER})
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR}/packages)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_PRE_BUILD_SCRIPTS ${packaging}/stage.cmake)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

set(CPACK_COMPONENTS_ALL ${packages})
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS OFF)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SOURCE gannet)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(same_version "(= ${PROJECT_VERSION}-1)")

# describe(COMPONENT SECTION SUMMARY TEXT): the fields that every package has. CPack looks for the
# variables of a component under its name in capitals. It must not put the project's own summary
# before each package's.
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")
macro(describe component section summary text)
  string(TOUPPER ${component} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${component})
  set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${section})
  set(CPACK_DEBIAN_${upper}_DESCRIPTION "${summary}\n${text}")
endmacro()

describe(gannet-server database "in-memory key-value store that clients read with one-sided RDMA"
  "Clients GET keys by RDMA READs of the server's memory, so GETs use none of
the server's CPU. This package has the server, its service for systemd and
its configuration. Clients may need keys, but nothing is encrypted: run it
on a network that only trusted hosts can reach.")
set(CPACK_DEBIAN_GANNET-SERVER_PACKAGE_DEPENDS
    "systemd | systemd-standalone-sysusers | systemd-sysusers")
set(CPACK_DEBIAN_GANNET-SERVER_PACKAGE_RECOMMENDS "ibverbs-providers, softverbs")
set(CPACK_DEBIAN_GANNET-SERVER_PACKAGE_SUGGESTS "gannet-tools")
foreach(script conffiles postinst prerm postrm)
  list(APPEND CPACK_DEBIAN_GANNET-SERVER_PACKAGE_CONTROL_EXTRA ${packaging}/debian/gannet-server/${script})
endforeach()

describe(gannet-tools database "shell, load generator and proxy for Gannet servers"
  "kvcli runs commands against a server, from a prompt, a script or the command
line. kvload puts load on a server, checks every value, and reports what the
operations cost. gannet-proxy lets programs of its host use the store by
memcached's and Redis' protocols.")
set(CPACK_DEBIAN_GANNET-TOOLS_PACKAGE_RECOMMENDS "ibverbs-providers, softverbs")
set(CPACK_DEBIAN_GANNET-TOOLS_PACKAGE_SUGGESTS "gnuplot-nox | gnuplot") # kvload --svg

describe(libgannet libs "client library of the RDMA key-value store Gannet"
  "Programs read keys with one-sided RDMA, by synchronous calls or with many
operations in flight. This package has the shared library.")
set(CPACK_DEBIAN_LIBGANNET_PACKAGE_NAME ${library})
set(CPACK_DEBIAN_LIBGANNET_PACKAGE_RECOMMENDS "ibverbs-providers")

describe(libgannet-dev libdevel "client library of the RDMA key-value store Gannet, for development"
  "This package has the headers for C++20 and C99, and the files by which CMake
and pkg-config find them.")
set(CPACK_DEBIAN_LIBGANNET-DEV_PACKAGE_DEPENDS "${library} ${same_version}, libabsl-dev")

describe(softverbs libs "user-space RDMA device for the processes of one host"
  "softverbs takes the place of libibverbs and librdmacm under unchanged
programs. It needs no kernel module, no root and no configuration. It is for
development and tests.")

describe(python3-gannet python "Python client of the RDMA key-value store Gannet"
  "Programs read keys with one-sided RDMA, by synchronous calls or in the event
loop of asyncio. Values of any length land in the program's own buffers.")
# dpkg-shlibdeps does not know libgannet, as it is not installed when the packages are made.
set(CPACK_DEBIAN_PYTHON3-GANNET_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_PYTHON3-GANNET_PACKAGE_DEPENDS
    "${library} ${same_version}, libc6, python3, python3-cffi-backend")
set(CPACK_DEBIAN_PYTHON3-GANNET_PACKAGE_SUGGESTS "python3-xxhash")
set(CPACK_DEBIAN_PYTHON3-GANNET_PACKAGE_CONTROL_EXTRA
    ${packaging}/debian/python3-gannet/postinst ${packaging}/debian/python3-gannet/prerm)

# CPack 4 makes such a trigger itself, in the place of scripts, and would make ours executable.
set(triggers)
if(CMAKE_VERSION VERSION_LESS 4)
  set(scripts ${packaging}/debian/libraries/postinst ${packaging}/debian/libraries/postrm)
  set(triggers ${scripts} ${packaging}/debian/libraries/triggers)
  set(CPACK_DEBIAN_SOFTVERBS_PACKAGE_CONTROL_EXTRA ${scripts})
endif()
set(CPACK_DEBIAN_LIBGANNET_PACKAGE_CONTROL_EXTRA ${triggers} ${CMAKE_CURRENT_BINARY_DIR}/shlibs)

include(CPack)
