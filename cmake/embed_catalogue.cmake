# SPDX-License-Identifier: Apache-2.0
# cmake -DROOT=<data/catalogue> -DOUTPUT=<file.cc> -P embed_catalogue.cmake
# Writes a source file that holds the text of every catalogue file.
file(GLOB_RECURSE files RELATIVE "${ROOT}" "${ROOT}/*.json")
list(REMOVE_ITEM files schema.json)
list(SORT files)

set(entries "")
foreach(file IN LISTS files)
  file(READ "${ROOT}/${file}" text)
  if(text MATCHES "\\)belay\"")
    message(FATAL_ERROR "${file} holds the end mark of the raw string")
  endif()
  string(APPEND entries "    {\"${file}\", R\"belay(${text})belay\"sv},\n")
endforeach()

file(CONFIGURE OUTPUT "${OUTPUT}" @ONLY CONTENT [[
// Generated from data/catalogue by cmake/embed_catalogue.cmake.
#include <string_view>

#include "diag/embedded.h"

namespace belay::diag {
namespace {
// The suffix brings the length: counting so many characters is beyond what
// clang does in a constant expression.
using namespace std::string_view_literals;

constexpr CatalogueFile kFiles[] = {
@entries@};
}  // namespace

std::span<const CatalogueFile> EmbeddedCatalogueFiles() { return kFiles; }

}  // namespace belay::diag
]])
