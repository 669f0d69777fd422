# A room sees only what the rows of its folders in the table in docs/architecture.md allow, and what those folders
# may include in turn, because their headers do. For each room, its include root has a link to each of these. So the
# compiler refuses any other #include. Within a room, tests/tree/rules_test.py holds each folder to its row.

cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH GANNET_SOURCE_DIR)
set(GANNET_INCLUDE_ROOTS ${CMAKE_BINARY_DIR}/include-roots)

# Reads the table: each folder's GANNET_MAY_INCLUDE_... becomes the folders of its row.
function(gannet_read_table)
  set(table ${GANNET_SOURCE_DIR}/docs/architecture.md)
  set_property(DIRECTORY ${GANNET_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${table})
  set(names "`[a-z_/]+`(, `[a-z_/]+`)*")
  file(STRINGS ${table} rows REGEX "^\\| ${names} \\| (${names} )?\\|$")
  if(NOT rows)
    message(FATAL_ERROR "${table}: no table of what a folder may include")
  endif()
  foreach(row IN LISTS rows)
    string(REGEX MATCH "^\\|([^|]*)\\|([^|]*)\\|$" matched "${row}")
    set(may_include ${CMAKE_MATCH_2})  # before the next match
    string(REGEX MATCHALL "[a-z_/]+" folders "${CMAKE_MATCH_1}")
    string(REGEX MATCHALL "[a-z_/]+" may_include "${may_include}")
    foreach(folder IN LISTS folders)
      set_property(GLOBAL PROPERTY GANNET_MAY_INCLUDE_${folder} ${may_include})
    endforeach()
  endforeach()
endfunction()
gannet_read_table()

# gannet_sees(TARGET FOLDER...): the target's sources see what these folders may include.
function(gannet_sees target)
  set(seen)
  set(ahead ${ARGN})
  while(ahead)
    list(POP_FRONT ahead folder)
    if(NOT folder IN_LIST seen)
      list(APPEND seen ${folder})
      get_property(may_include GLOBAL PROPERTY GANNET_MAY_INCLUDE_${folder})
      list(APPEND ahead ${may_include})
    endif()
  endwhile()
  set(root ${GANNET_INCLUDE_ROOTS}/${target})
  file(REMOVE_RECURSE ${root})
  file(MAKE_DIRECTORY ${root})
  foreach(folder IN LISTS seen)
    # Not libraries. Not server/ and proxy/ as a whole: what lies directly in them is no header.
    if(folder MATCHES "/" AND IS_DIRECTORY ${GANNET_SOURCE_DIR}/${folder})
      cmake_path(GET folder PARENT_PATH parent)
      file(MAKE_DIRECTORY ${root}/${parent})
      file(CREATE_LINK ${GANNET_SOURCE_DIR}/${folder} ${root}/${folder} SYMBOLIC)
    endif()
  endforeach()
  # For "...", not for <...>, so that the compiler looks for no header of a library there. Debuggers and
  # messages name the files themselves.
  target_compile_options(${target} PRIVATE "SHELL:-iquote ${root}" -ffile-prefix-map=${root}=${GANNET_SOURCE_DIR})
endfunction()

# gannet_sees_its_rows(TARGET SOURCE...): what the folders of these sources may include. tests/ sees everything:
# tests/CMakeLists.txt says so.
function(gannet_sees_its_rows target)
  set(folders)
  foreach(source IN LISTS ARGN)
    if(NOT IS_ABSOLUTE ${source})  # not what the build makes
      cmake_path(ABSOLUTE_PATH source)
      cmake_path(GET source PARENT_PATH folder)
      cmake_path(RELATIVE_PATH folder BASE_DIRECTORY ${GANNET_SOURCE_DIR})
      list(APPEND folders ${folder})
    endif()
  endforeach()
  list(REMOVE_DUPLICATES folders)
  if(NOT "${folders}" MATCHES "tests/")
    gannet_sees(${target} ${folders})
  endif()
endfunction()
