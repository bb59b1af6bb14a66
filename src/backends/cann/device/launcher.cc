// SPDX-License-Identifier: Apache-2.0
#include "backends/cann/device/launcher.h"

#include <algorithm>

#include "base/error_ids_cann.h"

namespace belay::cann {
namespace {

// Prefills of many lengths make many executors; decoding needs a few thousand.
constexpr size_t kMaxExecutors = size_t{1} << 17;

uint64_t HashOf(std::span<const uint64_t> key) {
  uint64_t hash = 0x9e3779b97f4a7c15u;
  for (const uint64_t word : key) {
    hash = (hash ^ word) * 0xff51afd7ed558ccdu;
    hash ^= hash >> 32;
  }
  return hash;
}

}  // namespace

void Launcher::AddKey(const Array& a) {
  key_.push_back(reinterpret_cast<uintptr_t>(a.data));
  key_.push_back(static_cast<uint64_t>(a.dtype) << 8 |
                 static_cast<uint64_t>(a.rank));
  for (int i = 0; i < a.rank; ++i) {
    key_.push_back(static_cast<uint64_t>(a.dim(i)));
    key_.push_back(static_cast<uint64_t>(a.stride(i)));
  }
}

cann_api::aclTensor* Launcher::Describe(const Array& a) const {
  const int64_t storage = a.extent();
  return runtime_.api().aclCreateTensor(
      a.dims.data(), static_cast<uint64_t>(a.rank), a.dtype, a.strides.data(),
      0, cann_api::ACL_FORMAT_ND, &storage, 1, a.data);
}

Launcher::Pointer<cann_api::aclTensor> Launcher::Hold(const Array& a,
                                                      Entry& entry) {
  cann_api::aclTensor* tensor = Describe(a);
  entry.tensors.emplace_back(&runtime_.api(), tensor);
  return {tensor};
}

Launcher::Pointer<cann_api::aclScalar> Launcher::Hold(const Num& n,
                                                      Entry& entry) {
  float number = static_cast<float>(n.value);
  auto whole = static_cast<int32_t>(n.value);
  void* value = n.dtype == cann_api::ACL_INT32 ? static_cast<void*>(&whole)
                                               : static_cast<void*>(&number);
  cann_api::aclScalar* scalar = runtime_.api().aclCreateScalar(value, n.dtype);
  entry.scalars.emplace_back(&runtime_.api(), scalar);
  return {scalar};
}

Launcher::Pointer<cann_api::aclIntArray> Launcher::Hold(const Axes& axes,
                                                        Entry& entry) {
  cann_api::aclIntArray* array =
      runtime_.api().aclCreateIntArray(axes.values.data(), axes.n);
  entry.arrays.emplace_back(&runtime_.api(), array);
  return {array};
}

// The list owns its member.
Launcher::Pointer<cann_api::aclTensorList> Launcher::Hold(const One& one,
                                                          Entry& entry) {
  const cann_api::aclTensor* tensor = Describe(one.tensor);
  cann_api::aclTensorList* list =
      runtime_.api().aclCreateTensorList(&tensor, 1);
  entry.lists.emplace_back(&runtime_.api(), list);
  return {list};
}

Launcher::Entry* Launcher::Find() {
  const auto [begin, end] = entries_.equal_range(HashOf(key_));
  for (auto it = begin; it != end; ++it) {
    if (it->second->key == key_) return it->second.get();
  }
  return nullptr;
}

Launcher::Entry* Launcher::Keep(int code, const char* name,
                                std::unique_ptr<Entry> entry) {
  if (code != 0) {
    Fail(runtime_.Check(code, name, op_));
    return nullptr;
  }
  if (entry->bytes > workspace_bytes_) {
    Fail(MakeError(
        kCannWorkspace,
        {.where = std::string(name) + " (" + op_ + ")",
         .what = "",
         .expected = "<= " + std::to_string(workspace_bytes_) + " bytes",
         .got = std::to_string(entry->bytes)}));
    runtime_.api().aclDestroyAclOpExecutor(entry->executor);
    return nullptr;
  }
  const cann_api::Api& api = runtime_.api();
  if (api.aclSetAclOpExecutorRepeatable(entry->executor) != 0) {
    once_ = std::move(entry);
    return once_.get();
  }
  entry->kept = cann_api::Executor(&api, entry->executor);
  entry->key = key_;
  return entries_.emplace(HashOf(key_), std::move(entry))->second.get();
}

void Launcher::Trim() {
  if (entries_.size() > kMaxExecutors) entries_.clear();
}

}  // namespace belay::cann
