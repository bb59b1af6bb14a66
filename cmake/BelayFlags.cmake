# SPDX-License-Identifier: Apache-2.0
# Compiler and linker flags. `belay_flags` carries what only our own targets
# must obey; global flags are those that change the meaning of arithmetic or
# must be the same for every object in a program.

# Numbers have to be the same on every machine: a fused multiply-add that the
# compiler forms on one CPU and not on another changes the last bit. For the
# same reason there is no -ffast-math and no -march=native here: instruction
# sets are chosen at run time (see docs/dependencies.md, Highway).
add_compile_options(-ffp-contract=off)

# Line tables only: back traces keep their lines, objects stay small.
set(CMAKE_CXX_FLAGS_RELEASE "-O3 -g1 -DNDEBUG")
set(CMAKE_C_FLAGS_RELEASE "-O3 -g1 -DNDEBUG")

if(BELAY_SANITIZE)
  add_compile_options(-fsanitize=${BELAY_SANITIZE} -fno-omit-frame-pointer
                      -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${BELAY_SANITIZE})
  # The thread sanitizer does not know fences; Asio's are only needed beside
  # its locks, which it does know.
  if(BELAY_SANITIZE MATCHES "thread")
    add_compile_definitions(BOOST_ASIO_DISABLE_FENCED_BLOCK)
  endif()
endif()

if(BELAY_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
  add_link_options(-fsanitize=fuzzer-no-link)
endif()

find_program(BELAY_CCACHE ccache)
if(BELAY_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # A first build is not preprocessed twice (depend); precompiled headers are
  # compared by their content (what GCC's own check holds true).
  set(launcher "${CMAKE_COMMAND}" -E env CCACHE_DEPEND=1
      CCACHE_SLOPPINESS=pch_defines,time_macros "${BELAY_CCACHE}")
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
endif()

add_library(belay_flags INTERFACE)
target_compile_options(belay_flags INTERFACE
  -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual
  -Wcast-qual -Wformat=2 -Wundef -Wimplicit-fallthrough
  $<$<BOOL:${BELAY_WERROR}>:-Werror>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(belay_flags INTERFACE
    -Wduplicated-cond -Wlogical-op
    # GCC raises these from inlined standard library code that is correct
    # (GCC bugs 105562, 106199); they stay visible, not fatal.
    -Wno-error=maybe-uninitialized
    -Wno-error=stringop-overflow -Wno-error=stringop-overread
    -Wno-error=array-bounds)
  # Sanitized std::function is all "uninitialized" to GCC (bug 105562 too).
  if(BELAY_SANITIZE)
    target_compile_options(belay_flags INTERFACE -Wno-maybe-uninitialized)
  endif()
  # Before GCC 13, `"text" + std::string` warns in each release build (GCC bug
  # 105651). The sanitizers and later compilers still look for overlaps.
  if(CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    target_compile_options(belay_flags INTERFACE -Wno-restrict)
  endif()
endif()
