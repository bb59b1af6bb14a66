# SPDX-License-Identifier: Apache-2.0
# Everything comes from the distribution (docs/dependencies.md); nothing is
# downloaded while configuring. `scripts/bootstrap` installs what is missing.

find_package(Threads REQUIRED)
find_package(absl REQUIRED)
find_package(hwy REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(CLI11 REQUIRED)
find_package(fmt REQUIRED)
find_package(tomlplusplus REQUIRED)
find_package(Boost 1.74 REQUIRED)  # headers only: Asio and Beast
find_package(GTest REQUIRED)
find_package(benchmark REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET GLOBAL libpcre2-8)
pkg_check_modules(hwloc REQUIRED IMPORTED_TARGET GLOBAL hwloc)
pkg_check_modules(archive REQUIRED IMPORTED_TARGET GLOBAL libarchive)
