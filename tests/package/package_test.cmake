# Installs the built tree into a temporary prefix, then configures, builds and runs a consumer that
# only knows find_package(weir). Called by ctest with -D BUILD_DIR, CONSUMER, WORK, GENERATOR, COMPILER, BUILD_TYPE.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${ARGN}\nended with ${code}:\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${WORK}/prefix)
set(configure ${CMAKE_COMMAND} -G ${GENERATOR} -S ${CONSUMER} -DCMAKE_BUILD_TYPE=${BUILD_TYPE}
    -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_PREFIX_PATH=${WORK}/prefix)
run(${configure} -B ${WORK}/build)
run(${CMAKE_COMMAND} --build ${WORK}/build)
if(NOT output MATCHES "\\[2/2\\]")
  message(FATAL_ERROR "the consumer is one source file and a link, yet its build did more or less:\n${output}")
endif()
run(${WORK}/build/consumer)
if(NOT output STREQUAL "key=value\n")
  message(FATAL_ERROR "the consumer printed:\n${output}")
endif()

# Every component can be found, together and alone.
foreach(components "runtime" "log" "state" "operators" "testing" "runtime;log;state;operators;testing")
  string(REPLACE ";" "_" name "${components}")
  file(WRITE ${WORK}/${name}/main.cc "int main() {}\n")
  string(REPLACE ";" " " listed "${components}")
  file(WRITE ${WORK}/${name}/CMakeLists.txt "cmake_minimum_required(VERSION 3.25)\nproject(probe LANGUAGES CXX)\n"
    "find_package(weir 0.1 REQUIRED COMPONENTS ${listed})\nadd_executable(probe main.cc)\n"
    "foreach(component ${listed})\n  target_link_libraries(probe PRIVATE weir::\${component})\nendforeach()\n")
  run(${CMAKE_COMMAND} -G ${GENERATOR} -S ${WORK}/${name} -B ${WORK}/${name}/build
      -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_PREFIX_PATH=${WORK}/prefix)
endforeach()

# What is refused: an unknown component, another minor version.
foreach(request "0.1 REQUIRED COMPONENTS runtime nonesuch" "0.2 REQUIRED COMPONENTS runtime")
  file(WRITE ${WORK}/refused/CMakeLists.txt
    "cmake_minimum_required(VERSION 3.25)\nproject(probe LANGUAGES CXX)\nfind_package(weir ${request})\n")
  execute_process(COMMAND ${CMAKE_COMMAND} -G ${GENERATOR} -S ${WORK}/refused -B ${WORK}/refused/build
    -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_PREFIX_PATH=${WORK}/prefix
    RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(code EQUAL 0 OR NOT output MATCHES "nonesuch|0\\.2")
    message(FATAL_ERROR "find_package(weir ${request}) was not refused with a reason:\n${output}")
  endif()
  file(REMOVE_RECURSE ${WORK}/refused)
endforeach()
