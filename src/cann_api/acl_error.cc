// SPDX-License-Identifier: Apache-2.0
#include "cann_api/acl_error.h"

#include <algorithm>

#include "base/error_ids_cann.h"
#include "cann_api/abi/codes.h"

namespace belay::cann_api {
namespace {

constexpr size_t kMaxMessage = 400;

// One line of printable text.
std::string OneLine(const char* message) {
  if (message == nullptr) return "";
  std::string text;
  for (const char* c = message; *c != '\0' && text.size() < kMaxMessage; ++c) {
    const bool blank = static_cast<unsigned char>(*c) <= ' ';
    if (!blank) text += *c;
    if (blank && !text.empty() && text.back() != ' ') text += ' ';
  }
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

const ErrorId& IdOf(int code) {
  switch (code) {
    case 207001:  // out of memory, of the host's view and the device's
    case 207018:
    case 200000:
      return kCannOutOfMemory;
    case 107019:  // waits that ended
    case 107020:
    case 507046:
    case 507047:
    case 507048:
      return kCannHung;
    case 107001:  // device numbers
    case 207004:
      return kCannNoDevice;
    default:
      break;
  }
  if (code >= 507000 && code < 508000) return kCannDeviceFault;
  const bool phase1 =
      (code >= 161000 && code < 162000) || (code >= 561000 && code < 562000);
  return phase1 ? kCannRefused : kCannCallFailed;
}

}  // namespace

std::string_view NameOfCode(int code) {
  switch (code) {
#define BELAY_NAME(name, value) \
  case value:                   \
    return #name;
    BELAY_ACL_CODES(BELAY_NAME)
#undef BELAY_NAME
    default:
      return "";
  }
}

Status StatusOf(const Api& api, int code, const Place& place) {
  if (code == 0) return absl::OkStatus();
  std::string where;
  if (place.device >= 0) where += "device " + std::to_string(place.device);
  if (place.stream >= 0) where += ", stream " + std::to_string(place.stream);
  if (!where.empty()) where += ", ";
  where += place.call;
  if (!place.detail.empty()) where += " (" + std::string(place.detail) + ")";
  std::string got = std::to_string(code);
  const std::string_view name = NameOfCode(code);
  if (!name.empty()) got += " (" + std::string(name) + ")";
  return MakeError(IdOf(code), {.where = std::move(where),
                                .what = OneLine(api.aclGetRecentErrMsg()),
                                .expected = "",
                                .got = std::move(got)});
}

bool IsFatal(const Status& status) {
  const std::string id = ErrorIdOf(status);
  return id == kCannHung.id || id == kCannDeviceFault.id;
}

}  // namespace belay::cann_api
