// SPDX-License-Identifier: Apache-2.0
// libacl_op_compiler.so: options are kept; compiling is refused, since there
// is no graph engine.
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "acl/acl_op_compiler.h"
#include "cannsim/private/runtime_link.h"

namespace {

std::mutex g_mutex;

std::map<int, std::string>& Options() {
  static auto* const options = new std::map<int, std::string>;
  return *options;
}

int No() {
  return cannsim_fail(ACL_ERROR_API_NOT_SUPPORT,
                      "cannsim does not simulate the graph engine");
}

bool IsOption(aclCompileOpt opt) {
  return opt >= ACL_PRECISION_MODE && opt <= ACL_OP_DEBUG_OPTION;
}

}  // namespace

extern "C" {

aclError aclSetCompileopt(aclCompileOpt opt, const char* value) {
  if (!IsOption(opt) || value == nullptr) {
    return cannsim_fail(ACL_ERROR_INVALID_PARAM,
                        "aclSetCompileopt: no such option, or a null value");
  }
  const std::lock_guard lock(g_mutex);
  Options()[opt] = value;
  return ACL_SUCCESS;
}

size_t aclGetCompileoptSize(aclCompileOpt opt) {
  const std::lock_guard lock(g_mutex);
  const auto it = Options().find(opt);
  return it == Options().end() ? 0 : it->second.size() + 1;
}

aclError aclGetCompileopt(aclCompileOpt opt, char* value, size_t length) {
  const std::lock_guard lock(g_mutex);
  const auto it = Options().find(opt);
  if (value == nullptr || it == Options().end() ||
      length < it->second.size() + 1) {
    return cannsim_fail(ACL_ERROR_INVALID_PARAM,
                        "aclGetCompileopt: the option was not set, or its "
                        "value does not fit");
  }
  std::memcpy(value, it->second.c_str(), it->second.size() + 1);
  return ACL_SUCCESS;
}

aclError aclopCompile(const char*, int, const aclTensorDesc* const[], int,
                      const aclTensorDesc* const[], const aclopAttr*,
                      aclopEngineType, aclopCompileType, const char*) {
  return No();
}

aclError aclopCompileAndExecute(const char*, int, const aclTensorDesc* const[],
                                const aclDataBuffer* const[], int,
                                const aclTensorDesc* const[],
                                aclDataBuffer* const[], const aclopAttr*,
                                aclopEngineType, aclopCompileType, const char*,
                                aclrtStream) {
  return No();
}

aclError aclopCompileAndExecuteV2(const char*, int, aclTensorDesc*[],
                                  aclDataBuffer*[], int, aclTensorDesc*[],
                                  aclDataBuffer*[], aclopAttr*, aclopEngineType,
                                  aclopCompileType, const char*, aclrtStream) {
  return No();
}

}  // extern "C"
