# Run at build time: writes OUTPUT from TEMPLATE, and only when it changed, so that a build without
# a new commit rebuilds nothing. Needs SOURCE_DIR, VERSION and KIND.
set(COMMIT "$Format:%H$")  # which git archive replaces
if(COMMIT MATCHES "^[0-9a-f]+$")
  string(SUBSTRING ${COMMIT} 0 12 COMMIT)
else()
  set(COMMIT "unknown")
  execute_process(COMMAND git -C ${SOURCE_DIR} describe --always --dirty --abbrev=12 --match=
                  OUTPUT_VARIABLE described OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET
                  RESULT_VARIABLE failed)
  if(NOT failed)
    set(COMMIT ${described})
  endif()
endif()
configure_file(${TEMPLATE} ${OUTPUT} @ONLY)
