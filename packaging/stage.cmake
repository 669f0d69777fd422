# Run by CPack between installing and packing. The tree of each package is a folder below
# CPACK_TEMPORARY_DIRECTORY.
file(GLOB trees LIST_DIRECTORIES true ${CPACK_TEMPORARY_DIRECTORY}/*)
foreach(tree ${trees})
  if(EXISTS ${tree}/usr/etc)
    file(RENAME ${tree}/usr/etc ${tree}/etc)
  endif()
  # Debian has the license once, in base-files.
  file(REMOVE ${tree}/usr/share/doc/softverbs/LICENSE)
  file(GLOB_RECURSE changelogs ${tree}/usr/share/doc/changelog*)
  if(changelogs)
    execute_process(COMMAND gzip -9n ${changelogs} COMMAND_ERROR_IS_FATAL ANY)
  endif()
endforeach()
