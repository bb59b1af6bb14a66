// SPDX-License-Identifier: Apache-2.0
#include "cann_api/api.h"

#include <dlfcn.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "base/error_ids_cann.h"

namespace belay::cann_api {
namespace {

namespace fs = std::filesystem;

// The first is what makes a folder CANN's; operators may lie in one library or
// in several.
constexpr const char* kRequired[] = {"libascendcl.so", "libnnopbase.so"};
constexpr const char* kOperators[] = {"libopapi.so", "libopapi_math.so",
                                      "libopapi_nn.so",
                                      "libopapi_transformer.so"};
constexpr const char* kUsualFolders[] = {
    "/usr/local/Ascend/ascend-toolkit/latest", "/usr/local/Ascend/cann",
    "/usr/local/Ascend/latest", "/usr/local/Ascend/nnae/latest"};

bool IsFile(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

std::vector<std::string> SplitList(const std::string& list) {
  std::vector<std::string> parts;
  size_t begin = 0;
  while (begin <= list.size()) {
    const size_t end = std::min(list.find(':', begin), list.size());
    if (end > begin) parts.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

void AddCustom(const std::string& package, LoadOptions* options) {
  options->custom_libraries.push_back(package + "/op_api/lib/libcust_opapi.so");
}

}  // namespace

LoadOptions OptionsFrom(
    const std::function<std::string(const char*)>& variable) {
  LoadOptions options;
  for (const char* name : {"ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME"}) {
    const std::string root = variable(name);
    if (!root.empty()) options.folders.push_back(root + "/lib64");
  }
  for (const char* root : kUsualFolders) {
    options.folders.push_back(std::string(root) + "/lib64");
  }
  for (const std::string& package :
       SplitList(variable("ASCEND_CUSTOM_OPP_PATH"))) {
    AddCustom(package, &options);
  }
  // Packages that are installed into the toolkit; ASCEND_CUSTOM_OPP_PATH goes
  // before them.
  const std::string opp = variable("ASCEND_OPP_PATH");
  std::error_code failed;
  if (!opp.empty() && options.custom_libraries.empty()) {
    for (const auto& vendor :
         fs::directory_iterator(opp + "/vendors", failed)) {
      AddCustom(vendor.path().string(), &options);
    }
  }
  return options;
}

void* SymbolBase::Find() const {
  if (!looked_.load(std::memory_order_acquire)) {
    found_.store(api_->Find(name_), std::memory_order_relaxed);
    looked_.store(true, std::memory_order_release);
  }
  return found_.load(std::memory_order_relaxed);
}

bool Api::Open(const std::string& file) {
  void* handle = dlopen(file.c_str(), RTLD_LAZY | RTLD_GLOBAL);
  if (handle == nullptr) return false;
  handles_.push_back(handle);
  libraries_.push_back(file);
  return true;
}

StatusOr<std::unique_ptr<Api>> Api::Load(const LoadOptions& options) {
  std::unique_ptr<Api> api(new Api);
  std::string folder;
  std::string searched;
  for (const std::string& candidate : options.folders) {
    searched += (searched.empty() ? "" : ", ") + candidate;
    if (!IsFile(fs::path(candidate) / kRequired[0])) continue;
    folder = candidate + "/";
    break;
  }
  for (const std::string& file : options.custom_libraries) {
    if (IsFile(file)) api->Open(file);
  }
  for (const char* name : kRequired) {
    if (api->Open(folder + name)) continue;
    const char* why = dlerror();
    return MakeError(kCannNotFound,
                     {.where = name,
                      .what = why != nullptr ? why : "",
                      .expected = "in " + searched + " or LD_LIBRARY_PATH",
                      .got = ""});
  }
  for (const char* name : kOperators) api->Open(folder + name);
  return api;
}

void* Api::Find(const char* name) const {
  for (void* handle : handles_) {
    void* found = dlsym(handle, name);
    if (found != nullptr) return found;
  }
  return nullptr;
}

bool Api::Has(const std::string& op) const {
  const std::string name = "aclnn" + op;
  return Find(name.c_str()) != nullptr &&
         Find((name + "GetWorkspaceSize").c_str()) != nullptr;
}

std::vector<MissingSymbol> Api::Missing() const {
  std::vector<MissingSymbol> missing;
#define BELAY_LOOK(name, type, cost) \
  if (!this->name) missing.push_back({#name, cost, std::string(cost).empty()});
  BELAY_ACL_FUNCTIONS(BELAY_LOOK)
#undef BELAY_LOOK
#define BELAY_LOOK(name, args)                                              \
  if (!this->name) {                                                        \
    missing.push_back({"aclnn" #name,                                       \
                       "operators composed of it do not run: the back end " \
                       "`cann` is refused",                                 \
                       false});                                             \
  }
  BELAY_ACLNN_OPERATORS(BELAY_LOOK)
#undef BELAY_LOOK
  return missing;
}

Status Api::CheckRequired() const {
  std::string names;
  for (const MissingSymbol& one : Missing()) {
    if (one.required) names += (names.empty() ? "" : ", ") + one.name;
  }
  if (names.empty()) return absl::OkStatus();
  return MakeError(kCannMissingSymbol, {.where = libraries_.back(),
                                        .what = names,
                                        .expected = "CANN 8.0 or newer",
                                        .got = ""});
}

}  // namespace belay::cann_api
