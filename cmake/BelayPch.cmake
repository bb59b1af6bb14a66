# SPDX-License-Identifier: Apache-2.0
# Reading the same headers (GoogleTest, Abseil's status, JSON, the standard
# library) is more than half of a build. GCC reads them once for each way of
# compiling and every target of that way shares the result. Files still include
# what they use: clang's builds are without (BELAY_PCH off) and would fail.

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  option(BELAY_PCH "Read the headers that most files include once" ON)
else()
  option(BELAY_PCH "Read the headers that most files include once" OFF)
endif()

set(BELAY_PCH_STANDARD
  <algorithm> <array> <atomic> <bit> <charconv> <chrono> <cmath> <cstdint>
  <cstdlib> <cstring> <filesystem> <fstream> <functional> <limits> <map>
  <memory> <mutex> <optional> <set> <span> <sstream> <string> <string_view>
  <thread> <unordered_map> <utility> <vector>)
set(BELAY_PCH_ROOM ${BELAY_PCH_STANDARD}
  <absl/status/status.h> <absl/status/statusor.h>)
set(BELAY_PCH_COLD ${BELAY_PCH_ROOM} <nlohmann/json.hpp>)
set(BELAY_PCH_APP ${BELAY_PCH_COLD} <CLI/CLI.hpp> <fmt/format.h>)
set(BELAY_PCH_TEST ${BELAY_PCH_COLD} <gmock/gmock.h> <gtest/gtest.h>)
set(BELAY_PCH_CANNSIM ${BELAY_PCH_STANDARD} <fmt/format.h>)
set(BELAY_PCH_COLD_CANNSIM ${BELAY_PCH_CANNSIM} <nlohmann/json.hpp>)

# Headers that define all they hold (CLI11, fmt in cannsim) are compiled into
# each file that uses them. Where that is most of a file's time, several of our
# files are compiled as one. Names of unnamed namespaces must then differ within
# a target, but for the files that are named here; builds without (clang's,
# tidy's) see that each file stands alone.
#
#   belay_unity(TARGET [files that are compiled by themselves])
option(BELAY_UNITY "Compile several files as one where that saves most"
       ${BELAY_PCH})
function(belay_unity TARGET)
  if(BELAY_UNITY)
    set_target_properties(${TARGET} PROPERTIES
      UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
    set_source_files_properties(${ARGN} PROPERTIES
      SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
endfunction()

# belay_pch(TARGET KIND): TARGET takes the headers of KIND (room, cold, app,
# test, cannsim, cold_cannsim) from the one place where they are read. A target's options must be
# those of the first one of its kind, or the compiler warns that they are not
# (an error here).
function(belay_pch TARGET KIND)
  if(NOT BELAY_PCH)
    return()
  endif()
  set(donor belay_pch_${KIND})
  if(NOT TARGET ${donor})
    string(TOUPPER ${KIND} kind)
    set(source "${CMAKE_BINARY_DIR}/pch/${KIND}.cc")
    if(NOT EXISTS "${source}")
      file(WRITE "${source}" "// The headers of ${KIND}: cmake/BelayPch.cmake.\n")
    endif()
    if(KIND STREQUAL "test")
      add_executable(${donor} EXCLUDE_FROM_ALL "${source}")
    else()
      add_library(${donor} OBJECT EXCLUDE_FROM_ALL "${source}")
    endif()
    target_link_libraries(${donor} PRIVATE belay_flags)
    if(KIND STREQUAL "test")
      target_link_libraries(${donor} PRIVATE GTest::gtest_main GTest::gmock)
    elseif(KIND STREQUAL "app")
      target_link_libraries(${donor} PRIVATE CLI11::CLI11 fmt::fmt)
    elseif(KIND MATCHES "cannsim")
      target_link_libraries(${donor} PRIVATE fmt::fmt-header-only)
    endif()
    if(KIND MATCHES "^(cold.*|app|test)$")
      belay_cold(${donor})
    endif()
    target_precompile_headers(${donor} PRIVATE ${BELAY_PCH_${kind}})
  endif()
  target_precompile_headers(${TARGET} REUSE_FROM ${donor})
endfunction()
