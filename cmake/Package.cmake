# find_package(weir 0.1 COMPONENTS runtime log state operators testing): lib/cmake/weir of the prefix.
include(CMakePackageConfigHelpers)
set(weir_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/weir)

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/weirConfig.cmake.in
  ${PROJECT_BINARY_DIR}/weirConfig.cmake INSTALL_DESTINATION ${weir_package_dir})
# Until 1.0 a minor version may change an interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/weirConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(EXPORT weirTargets NAMESPACE weir:: DESTINATION ${weir_package_dir})
install(FILES ${PROJECT_BINARY_DIR}/weirConfig.cmake ${PROJECT_BINARY_DIR}/weirConfigVersion.cmake
        DESTINATION ${weir_package_dir})
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
