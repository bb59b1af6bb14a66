# SPDX-License-Identifier: Apache-2.0
# How the parts of the tree become targets.
#
#   belay_room(NAME [COLD] [DEPS ...] [TEST_DEPS ...])
#     A folder under src/ (NAME is its path below src/, e.g. backends/ref).
#     Every *.cc below it goes into the library belay_<NAME>, every *_test.cc
#     into the test program <NAME>_test ("/" becomes "_" in both). Subfolders
#     with a CMakeLists.txt of their own are rooms of their own and left out.
#     DEPS: rooms by path (base, backends/ref) or imported targets with "::".
#     A new file needs no edit here, and no configure by hand.
#
#     COLD: its speed does not matter, so that release builds spend less time
#     on it (-O1).
#
#   belay_app(NAME OUTPUT program [DEPS ...] [HOT files ...] [APART files ...])
#     The same for a folder with a program: main.cc stays out of the library,
#     so that the tests can use all the rest. COLD, but for the files of HOT.
#     APART: see belay_unity.
#
#   belay_test(NAME LABEL label SOURCES ... [DEPS ...] [TIMEOUT seconds])
#     A test program outside src/. Labels: unit, conformance, golden, cases,
#     e2e, long. `make test` runs all but long.
#
#   belay_on_cannsim(TARGET)
#     A test program that runs on the stand-in for CANN: its libraries are built
#     first, and BELAY_CANNSIM is the folder of the toolkit.
#
#   belay_fuzzer(NAME SOURCES ... [DEPS ...] [CORPUS folder])
#     A libFuzzer program, built by the target `fuzzers`; elsewhere than in the
#     fuzz preset it becomes a test that runs the files of its corpus once
#     (label fuzz).
#
#   belay_bench(NAME SOURCES ... [DEPS ...])
#     A Google Benchmark program in bin/bench; `make bench` runs them.

# Maps rooms to targets and passes everything with "::" as it is.
function(belay_targets OUT)
  set(targets)
  foreach(dep IN LISTS ARGN)
    if(dep MATCHES "::")
      list(APPEND targets ${dep})
      continue()
    endif()
    string(REPLACE "/" "_" target "belay_${dep}")
    if(NOT TARGET ${target})
      message(FATAL_ERROR
        "${CMAKE_CURRENT_SOURCE_DIR}: there is no room '${dep}' (no target "
        "${target}). Rooms are added in the order of src/CMakeLists.txt; does "
        "src/${dep}/CMakeLists.txt exist, and does it come earlier?")
    endif()
    list(APPEND targets ${target})
  endforeach()
  set(${OUT} "${targets}" PARENT_SCOPE)
endfunction()

# All *.cc below the current folder, without those of rooms inside it.
function(belay_sources OUT_LIBRARY OUT_TESTS)
  file(GLOB_RECURSE files CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cc")
  set(library)
  set(tests)
  foreach(file IN LISTS files)
    get_filename_component(dir "${file}" DIRECTORY)
    set(mine TRUE)
    while(NOT dir STREQUAL CMAKE_CURRENT_SOURCE_DIR)
      if(EXISTS "${dir}/CMakeLists.txt")
        set(mine FALSE)
      endif()
      get_filename_component(dir "${dir}" DIRECTORY)
    endwhile()
    if(NOT mine)
      continue()
    elseif(file MATCHES "_test\\.cc$")
      list(APPEND tests "${file}")
    else()
      list(APPEND library "${file}")
    endif()
  endforeach()
  set(${OUT_LIBRARY} "${library}" PARENT_SCOPE)
  set(${OUT_TESTS} "${tests}" PARENT_SCOPE)
endfunction()

function(belay_library TARGET SOURCES DEPS)
  if(SOURCES)
    add_library(${TARGET} STATIC ${SOURCES})
    target_include_directories(${TARGET} PUBLIC "${CMAKE_SOURCE_DIR}/src")
    target_link_libraries(${TARGET} PUBLIC ${DEPS} PRIVATE belay_flags)
  else()
    add_library(${TARGET} INTERFACE)
    target_include_directories(${TARGET} INTERFACE "${CMAKE_SOURCE_DIR}/src")
    target_link_libraries(${TARGET} INTERFACE ${DEPS})
  endif()
endfunction()

# One test program, one ctest entry. The working folder is the source root, so
# that tests name their data as data/... and tests/... on every machine.
function(belay_test_program TARGET LABEL TIMEOUT SOURCES LINK)
  add_executable(${TARGET} ${SOURCES})
  set_target_properties(${TARGET} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/test")
  target_include_directories(${TARGET} PRIVATE "${CMAKE_SOURCE_DIR}/src")
  target_link_libraries(${TARGET} PRIVATE
    ${LINK} belay_flags GTest::gtest_main GTest::gmock)
  # The code under test keeps its own level; of a test, the macros take the
  # compiler's time, and its own speed does not matter.
  belay_cold(${TARGET})
  belay_pch(${TARGET} test)
  add_test(NAME ${TARGET} COMMAND ${TARGET}
           WORKING_DIRECTORY "${CMAKE_SOURCE_DIR}")
  belay_test_properties(${TARGET} ${LABEL} ${TIMEOUT})
endfunction()

# Emulated and sanitized programs are slower by an order of magnitude.
function(belay_test_properties NAME LABEL TIMEOUT)
  if(CMAKE_CROSSCOMPILING OR BELAY_SANITIZE)
    math(EXPR TIMEOUT "${TIMEOUT} * 10")
  endif()
  set_tests_properties(${NAME} PROPERTIES
    LABELS "${LABEL}" TIMEOUT ${TIMEOUT}
    ENVIRONMENT "LC_ALL=C.UTF-8;TZ=UTC;GTEST_COLOR=no;\
ASCEND_PROCESS_LOG_PATH=${CMAKE_BINARY_DIR}/test/ascend-log")
endfunction()

function(belay_cold TARGET)
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    target_compile_options(${TARGET} PRIVATE -O1)
  endif()
endfunction()

function(belay_room NAME)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "COLD" "" "DEPS;TEST_DEPS")
  belay_check_arguments(${NAME} "${ARG_UNPARSED_ARGUMENTS}")
  string(REPLACE "/" "_" id "${NAME}")
  belay_sources(sources tests)
  belay_targets(deps ${ARG_DEPS})
  belay_library(belay_${id} "${sources}" "${deps}")
  if(ARG_COLD)
    belay_cold(belay_${id})
    belay_pch(belay_${id} cold)
  elseif(sources)
    belay_pch(belay_${id} room)
  endif()
  if(tests)
    belay_targets(test_deps ${ARG_TEST_DEPS})
    belay_test_program(${id}_test unit 120 "${tests}"
                       "belay_${id};${test_deps}")
  endif()
endfunction()

function(belay_app NAME)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "OUTPUT" "DEPS;TEST_DEPS;HOT;APART")
  belay_check_arguments(${NAME} "${ARG_UNPARSED_ARGUMENTS}")
  string(REPLACE "/" "_" id "${NAME}")
  belay_sources(sources tests)
  list(REMOVE_ITEM sources "${CMAKE_CURRENT_SOURCE_DIR}/main.cc")
  belay_targets(deps ${ARG_DEPS})
  belay_library(belay_${id} "${sources}" "${deps}")
  belay_cold(belay_${id})
  belay_pch(belay_${id} app)
  belay_unity(belay_${id} ${ARG_APART})
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    set_source_files_properties(${ARG_HOT} PROPERTIES
      COMPILE_OPTIONS -O3 SKIP_PRECOMPILE_HEADERS ON
      SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
  add_executable(${ARG_OUTPUT} "${CMAKE_CURRENT_SOURCE_DIR}/main.cc")
  target_link_libraries(${ARG_OUTPUT} PRIVATE belay_${id} belay_flags)
  if(tests)
    belay_targets(test_deps ${ARG_TEST_DEPS})
    belay_test_program(${id}_test unit 120 "${tests}"
                       "belay_${id};${test_deps}")
  endif()
endfunction()

function(belay_test NAME)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "LABEL;TIMEOUT" "SOURCES;DEPS")
  belay_check_arguments(${NAME} "${ARG_UNPARSED_ARGUMENTS}")
  if(NOT ARG_LABEL OR NOT ARG_SOURCES)
    message(FATAL_ERROR "belay_test(${NAME}): LABEL and SOURCES are needed")
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  belay_targets(deps ${ARG_DEPS})
  belay_test_program(${NAME} ${ARG_LABEL} ${ARG_TIMEOUT} "${ARG_SOURCES}"
                     "${deps}")
endfunction()

function(belay_on_cannsim TARGET)
  target_compile_definitions(${TARGET} PRIVATE
    BELAY_CANNSIM="${CMAKE_BINARY_DIR}/cannsim")
  add_dependencies(${TARGET} ascendcl nnopbase opapi cust_opapi_A2
    cust_opapi_A3 cust_opapi_A5 cannsim_data)
endfunction()

function(belay_fuzzer NAME)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "CORPUS" "SOURCES;DEPS")
  belay_check_arguments(${NAME} "${ARG_UNPARSED_ARGUMENTS}")
  belay_targets(deps ${ARG_DEPS})
  set(sources ${ARG_SOURCES})
  if(NOT BELAY_FUZZ)
    list(APPEND sources "${CMAKE_SOURCE_DIR}/cmake/fuzz_replay.cc")
  endif()
  add_executable(${NAME} ${sources})
  set_target_properties(${NAME} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/fuzz")
  target_include_directories(${NAME} PRIVATE "${CMAKE_SOURCE_DIR}/src")
  target_link_libraries(${NAME} PRIVATE ${deps} belay_flags)
  set(corpus)
  if(ARG_CORPUS)
    get_filename_component(corpus "${ARG_CORPUS}" ABSOLUTE)
  endif()
  if(BELAY_FUZZ)
    target_link_options(${NAME} PRIVATE -fsanitize=fuzzer)
    if(NOT TARGET fuzzers)
      add_custom_target(fuzzers)
    endif()
    add_dependencies(fuzzers ${NAME})
    # One line a fuzzer for scripts/check: program, then its corpus.
    set_property(GLOBAL APPEND PROPERTY BELAY_FUZZERS "${NAME}\t${corpus}")
  else()
    add_test(NAME ${NAME} COMMAND ${NAME} ${corpus}
             WORKING_DIRECTORY "${CMAKE_SOURCE_DIR}")
    belay_test_properties(${NAME} fuzz 120)
  endif()
endfunction()

function(belay_bench NAME)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "" "SOURCES;DEPS")
  belay_check_arguments(${NAME} "${ARG_UNPARSED_ARGUMENTS}")
  belay_targets(deps ${ARG_DEPS})
  add_executable(${NAME} ${ARG_SOURCES})
  set_target_properties(${NAME} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bench")
  target_include_directories(${NAME} PRIVATE "${CMAKE_SOURCE_DIR}/src")
  target_link_libraries(${NAME} PRIVATE
    ${deps} belay_flags benchmark::benchmark)
endfunction()

function(belay_check_arguments NAME UNPARSED)
  if(UNPARSED)
    message(FATAL_ERROR "${NAME}: unknown arguments: ${UNPARSED}")
  endif()
endfunction()

# Adds each folder that is there, in the given order.
function(belay_add_subdirectories)
  foreach(dir IN LISTS ARGN)
    if(EXISTS "${CMAKE_CURRENT_SOURCE_DIR}/${dir}/CMakeLists.txt")
      add_subdirectory(${dir})
    endif()
  endforeach()
endfunction()

# What needs to know all targets.
function(belay_finish)
  if(BELAY_FUZZ)
    get_property(fuzzers GLOBAL PROPERTY BELAY_FUZZERS)
    list(JOIN fuzzers "\n" lines)
    file(GENERATE OUTPUT "${CMAKE_BINARY_DIR}/fuzzers.txt" CONTENT "${lines}\n")
  endif()
endfunction()
