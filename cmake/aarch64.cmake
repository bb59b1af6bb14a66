# SPDX-License-Identifier: Apache-2.0
# Cross build for aarch64, as most Ascend hosts are: Debian's cross compiler,
# libraries from build/sysroot-aarch64 (scripts/sysroot_aarch64 unpacks them
# there, the system stays as it is), test programs under qemu-user.

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)

get_filename_component(BELAY_SYSROOT
  "${CMAKE_CURRENT_LIST_DIR}/../build/sysroot-aarch64" ABSOLUTE)
set(_libraries "${BELAY_SYSROOT}/usr/lib/aarch64-linux-gnu")

# Headers and libraries only from there, programs only from here.
set(CMAKE_FIND_ROOT_PATH "${BELAY_SYSROOT}" /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_LIBDIR}
    "${_libraries}/pkgconfig:${BELAY_SYSROOT}/usr/share/pkgconfig")
set(ENV{PKG_CONFIG_SYSROOT_DIR} "${BELAY_SYSROOT}")

# Headers and libraries of libraries.
set(CMAKE_CXX_STANDARD_INCLUDE_DIRECTORIES "${BELAY_SYSROOT}/usr/include")
set(CMAKE_EXE_LINKER_FLAGS_INIT "-Wl,-rpath-link,${_libraries}")
set(CMAKE_SHARED_LINKER_FLAGS_INIT "-Wl,-rpath-link,${_libraries}")

set(CMAKE_CROSSCOMPILING_EMULATOR
    qemu-aarch64-static -L /usr/aarch64-linux-gnu
    -E "LD_LIBRARY_PATH=${_libraries}")
