# weir_precompile(TARGET): the headers of cmake/precompiled.h, compiled once, by the first library.
function(weir_precompile target)
  if(NOT WEIR_PRECOMPILE)
    return()
  endif()
  if(target STREQUAL weir_runtime)
    target_precompile_headers(${target} PRIVATE ${PROJECT_SOURCE_DIR}/cmake/precompiled.h)
  else()
    target_precompile_headers(${target} REUSE_FROM weir_runtime)
  endif()
endfunction()

# weir_library(NAME [DEPENDS folder...] [LINK_PUBLIC target...] [LINK_PRIVATE target...] [EXCLUDE regex])
#
# One call per top-level folder: static library weir::NAME from every .cc below NAME/, public headers
# from NAME/include (each compiled alone by the target all_verify_interface_header_sets), install rules.
function(weir_library name)
  cmake_parse_arguments(arg "" "EXCLUDE" "DEPENDS;LINK_PUBLIC;LINK_PRIVATE;SOURCES;HEADERS" ${ARGN})
  if(arg_SOURCES)
    set(sources ${arg_SOURCES})
    set(headers ${arg_HEADERS})
    set(base_dirs ${PROJECT_SOURCE_DIR}/runtime/include ${PROJECT_SOURCE_DIR}/operators/include)
  else()
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${name}/*.cc)
    file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${name}/include/*.h)
    list(FILTER sources EXCLUDE REGEX "/${name}/testing/")
    list(FILTER headers EXCLUDE REGEX "/testing/")
    if(arg_EXCLUDE)
      list(FILTER sources EXCLUDE REGEX "${arg_EXCLUDE}")
    endif()
    set(base_dirs ${PROJECT_SOURCE_DIR}/${name}/include)
  endif()
  add_library(weir_${name} STATIC ${sources})
  add_library(weir::${name} ALIAS weir_${name})
  set_target_properties(weir_${name} PROPERTIES EXPORT_NAME ${name} VERIFY_INTERFACE_HEADER_SETS ON)
  target_sources(weir_${name} PUBLIC FILE_SET HEADERS BASE_DIRS ${base_dirs} FILES ${headers})
  target_include_directories(weir_${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_features(weir_${name} PUBLIC cxx_std_20)
  foreach(dependency IN LISTS arg_DEPENDS)
    target_link_libraries(weir_${name} PUBLIC weir::${dependency})
  endforeach()
  target_link_libraries(weir_${name} PUBLIC ${arg_LINK_PUBLIC} PRIVATE ${arg_LINK_PRIVATE} $<BUILD_INTERFACE:weir_warnings>)
  weir_precompile(weir_${name})
  install(TARGETS weir_${name} EXPORT weirTargets FILE_SET HEADERS)
endfunction()

# weir_proto(LIBRARY file.proto): its generated code becomes part of weir_LIBRARY, which includes it as
# "file.pb.h". A target of its own, without our warnings.
function(weir_proto library proto)
  get_filename_component(name ${proto} NAME_WE)
  get_filename_component(folder ${PROJECT_SOURCE_DIR}/${proto} DIRECTORY)
  set(generated ${PROJECT_BINARY_DIR}/generated/${library})
  file(MAKE_DIRECTORY ${generated})
  add_custom_command(
    OUTPUT ${generated}/${name}.pb.cc ${generated}/${name}.pb.h
    COMMAND protobuf::protoc --cpp_out=${generated} --proto_path=${folder} ${PROJECT_SOURCE_DIR}/${proto}
    DEPENDS ${PROJECT_SOURCE_DIR}/${proto})
  set(target weir_${library}_${name}_proto)
  add_library(${target} OBJECT ${generated}/${name}.pb.cc ${generated}/${name}.pb.h)
  target_link_libraries(${target} PUBLIC protobuf::libprotobuf)
  add_dependencies(weir_${library} ${target})
  if(NOT TARGET weir_protos)
    add_custom_target(weir_protos)  # all generated code, for tools that read sources
  endif()
  add_dependencies(weir_protos ${target})
  target_sources(weir_${library} PRIVATE $<TARGET_OBJECTS:${target}>)
  target_include_directories(weir_${library} SYSTEM PRIVATE ${generated})
endfunction()

# weir_tests(FOLDER DEPENDS target...): one test program from every *_test.cc below tests/FOLDER.
function(weir_tests folder)
  cmake_parse_arguments(arg "" "" "DEPENDS;LABELS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/${folder}/*.cc)
  if(NOT sources)
    return()
  endif()
  string(REPLACE "/" "_" program ${folder}_tests)
  add_executable(${program} ${sources})
  target_include_directories(${program} PRIVATE ${PROJECT_SOURCE_DIR})
  # Relative to the project's root, where tests/support/test_main.cc goes before any test.
  file(RELATIVE_PATH bin_dir ${PROJECT_SOURCE_DIR} ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
  target_compile_definitions(${program} PRIVATE WEIR_TEST_DATA="tests/data" WEIR_BIN_DIR="${bin_dir}")
  target_link_libraries(${program} PRIVATE ${arg_DEPENDS} weir_warnings weir_test_main)
  target_precompile_headers(${program} REUSE_FROM weir_test_main)
  weir_register_tests(${program} TIMEOUT 600 LABELS ${folder} ${arg_LABELS})
endfunction()

# weir_register_tests(PROGRAM TIMEOUT seconds LABELS label...): each case of a test program is a test of
# ctest; with WEIR_TEST_SHARDS a process runs a share of the cases (a sanitizer's start costs 0.15 s).
function(weir_register_tests program)
  cmake_parse_arguments(arg "" "TIMEOUT" "LABELS" ${ARGN})
  if(NOT WEIR_TEST_SHARDS)
    gtest_discover_tests(${program} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} NO_PRETTY_VALUES DISCOVERY_TIMEOUT 60
                         PROPERTIES TIMEOUT ${arg_TIMEOUT} LABELS "${arg_LABELS}")
    return()
  endif()
  math(EXPR last "${WEIR_TEST_SHARDS} - 1")
  foreach(shard RANGE ${last})
    add_test(NAME ${program}.${shard} COMMAND ${program} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(${program}.${shard} PROPERTIES TIMEOUT 1800 LABELS "${arg_LABELS}"
      ENVIRONMENT "GTEST_TOTAL_SHARDS=${WEIR_TEST_SHARDS};GTEST_SHARD_INDEX=${shard}")
  endforeach()
endfunction()
