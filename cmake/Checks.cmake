# The layers are checked by every build: a crossing fails it. WEIR_PYTHON is Debian's own interpreter
# where there is one, since its packages (python3-kafka, for the tests) are invisible to others.
find_program(WEIR_PYTHON NAMES python3 PATHS /usr/bin NO_DEFAULT_PATH)
find_program(WEIR_PYTHON NAMES python3 REQUIRED)

file(GLOB_RECURSE weir_checked_sources CONFIGURE_DEPENDS
  runtime/*.h runtime/*.cc log/*.h log/*.cc state/*.h state/*.cc operators/*.h operators/*.cc
  apps/*.h apps/*.cc bench/*.h bench/*.cc tests/*.h tests/*.cc)
add_custom_command(OUTPUT ${PROJECT_BINARY_DIR}/layers.stamp
  COMMAND ${WEIR_PYTHON} ${PROJECT_SOURCE_DIR}/scripts/check_layers.py ${PROJECT_SOURCE_DIR}
  COMMAND ${CMAKE_COMMAND} -E touch ${PROJECT_BINARY_DIR}/layers.stamp
  DEPENDS ${PROJECT_SOURCE_DIR}/scripts/check_layers.py ${weir_checked_sources}
  COMMENT "Checking the layers" VERBATIM)
add_custom_target(weir_layers ALL DEPENDS ${PROJECT_BINARY_DIR}/layers.stamp)
