# `cpack` in a build of softverbs alone: a package for Debian, and an archive to unpack anywhere. A
# project that includes softverbs packs the component itself.
set(CPACK_GENERATOR "DEB;TGZ")
set(CPACK_PACKAGE_NAME softverbs)
set(CPACK_PACKAGE_CONTACT "softverbs maintainers <maintainers@softverbs.invalid>" CACHE STRING
    "Name and address of whoever makes the packages")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY ${PROJECT_DESCRIPTION})
set(CPACK_PACKAGE_DESCRIPTION
    "softverbs takes the place of libibverbs and librdmacm under unchanged
programs. It needs no kernel module, no root and no configuration. It is for
development and tests.")
set(CPACK_STRIP_FILES ON)
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "ibverbs-utils, rdmacm-utils, perftest")
include(CPack)
