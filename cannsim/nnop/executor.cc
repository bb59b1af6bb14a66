// SPDX-License-Identifier: Apache-2.0
#include "cannsim/nnop/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "cannsim/nnop/live.h"
#include "cannsim/nnop/traits.h"

struct aclOpExecutor {
  std::string name;
  std::vector<aclTensor> tensors;  // data == nullptr where left out
  std::vector<bool> present;
  std::vector<bool> outputs;
  cannsim::Kernel kernel;
  bool repeatable = false;
};

namespace cannsim {
namespace {

// Executors that phase 2 may take. A second phase 2 with the same one is an
// error, not a crash.
class Executors {
 public:
  static Executors& Get() {
    static auto* const all = new Executors;
    return *all;
  }

  aclOpExecutor* Add(std::shared_ptr<aclOpExecutor> executor) {
    aclOpExecutor* handle = executor.get();
    const std::lock_guard lock(mutex_);
    live_[handle] = std::move(executor);
    NoteMade(handle, "aclOpExecutor", nullptr);
    return handle;
  }

  std::shared_ptr<aclOpExecutor> Find(const aclOpExecutor* handle) {
    const std::lock_guard lock(mutex_);
    const auto it = live_.find(handle);
    return it == live_.end() ? nullptr : it->second;
  }

  bool Remove(const aclOpExecutor* handle) {
    const std::lock_guard lock(mutex_);
    if (live_.erase(handle) == 0) return false;
    NoteGone(handle, "aclOpExecutor", nullptr);
    return true;
  }

 private:
  std::mutex mutex_;
  std::unordered_map<const aclOpExecutor*, std::shared_ptr<aclOpExecutor>>
      live_;
};

// Bits of one element; 0 for what has none.
size_t BitsOf(aclDataType dtype) {
  if (dtype == ACL_INT4 || dtype == ACL_FLOAT4_E2M1 ||
      dtype == ACL_FLOAT4_E1M2) {
    return 4;
  }
  return 8 * aclDataTypeSize(dtype);
}

// Where the view's elements end, in elements from its first.
int64_t ExtentOf(const aclTensor& tensor) {
  int64_t last = 0;
  for (size_t i = 0; i < tensor.dims.size(); ++i) {
    if (tensor.dims[i] == 0) return 0;
    last += (tensor.dims[i] - 1) * tensor.strides[i];
  }
  return last + 1;
}

// aclCreateTensor holds strides to what an address can be; some operators are
// given other strides apart.
bool HasSaneStrides(const aclTensor& tensor) {
  constexpr int64_t kLargest = int64_t{1} << 56;
  int64_t extent = 1;
  for (size_t i = 0; i < tensor.dims.size(); ++i) {
    int64_t step = 0;
    if (tensor.strides[i] < 0 ||
        __builtin_mul_overflow(tensor.dims[i], tensor.strides[i], &step) ||
        __builtin_add_overflow(extent, step, &extent)) {
      return false;
    }
  }
  return extent <= kLargest;
}

bool Locate(const aclTensor& tensor, const char* use, Array* array) {
  array->dims = tensor.dims;
  array->strides = tensor.strides;
  array->dtype = tensor.dtype;
  array->present = true;
  const int64_t n = ExtentOf(tensor);
  if (n == 0) return true;
  const size_t bits = BitsOf(tensor.dtype);
  const char* first = static_cast<const char*>(tensor.data) +
                      static_cast<size_t>(tensor.offset) * bits / 8;
  const size_t bytes = (static_cast<size_t>(n) * bits + 7) / 8;
  array->base = cannsim_worker(first, bytes, use);
  return array->base != nullptr;
}

int Complaint(const char* name, int code, const std::string& text) {
  return cannsim_fail(code, fmt::format("{}: {}", name, text).c_str());
}

}  // namespace

Phase1::Phase1(const char* name, uint64_t* workspace_size,
               aclOpExecutor** executor)
    : name_(name), workspace_size_(workspace_size), executor_(executor) {
  NotNull(workspace_size, "workspaceSize").NotNull(executor, "executor");
  if (cannsim_missing(name)) {
    Complain(ACLNN_ERR_INNER_FIND_KERNEL_ERROR,
             "no kernel of this operator for this chip");
  }
}

void Phase1::Complain(aclnnStatus code, const std::string& text) {
  if (code_ != ACLNN_SUCCESS) return;
  code_ = Complaint(name_, code, text);
}

Phase1& Phase1::NotNull(const void* argument, const char* what) {
  if (argument == nullptr) {
    Complain(ACLNN_ERR_PARAM_NULLPTR, fmt::format("{} is null", what));
  }
  return *this;
}

Phase1& Phase1::Require(bool condition, const std::string& otherwise) {
  if (!condition) Complain(ACLNN_ERR_PARAM_INVALID, otherwise);
  return *this;
}

Phase1& Phase1::OnlyOn(std::initializer_list<Generation> generations) {
  const Profile& profile = *cannsim_profile();
  if (std::find(generations.begin(), generations.end(), profile.generation) ==
      generations.end()) {
    Complain(ACLNN_ERR_INNER_FIND_KERNEL_ERROR,
             fmt::format("there is no kernel of it for {}", profile.name));
  }
  return *this;
}

Phase1& Phase1::Add(const aclTensor* tensor, const char* what, bool output,
                    bool optional) {
  if (!optional) NotNull(tensor, what);
  if (tensor != nullptr && tensor->data == nullptr &&
      tensor->n_elements() > 0) {
    Complain(ACLNN_ERR_PARAM_INVALID, fmt::format("{} has no address", what));
  }
  if (tensor != nullptr && !HasSaneStrides(*tensor)) {
    Complain(ACLNN_ERR_PARAM_INVALID,
             fmt::format("{}: a stride is negative or too large", what));
  }
  tensors_.push_back(tensor == nullptr ? aclTensor() : *tensor);
  originals_.push_back(tensor);
  outputs_.push_back(output);
  return *this;
}

Phase1& Phase1::In(const aclTensor* tensor, const char* what) {
  return Add(tensor, what, /*output=*/false, /*optional=*/false);
}

Phase1& Phase1::Out(const aclTensor* tensor, const char* what) {
  return Add(tensor, what, /*output=*/true, /*optional=*/false);
}

Phase1& Phase1::InOptional(const aclTensor* tensor, const char* what) {
  return Add(tensor, what, /*output=*/false, /*optional=*/true);
}

Phase1& Phase1::OutOptional(const aclTensor* tensor, const char* what) {
  return Add(tensor, what, /*output=*/true, /*optional=*/true);
}

aclnnStatus Phase1::Finish(Kernel kernel) {
  if (code_ != ACLNN_SUCCESS) return code_;
  auto made = std::make_shared<aclOpExecutor>();
  made->name = name_;
  made->tensors = std::move(tensors_);
  for (const aclTensor* original : originals_) {
    made->present.push_back(original != nullptr);
  }
  made->outputs = std::move(outputs_);
  made->kernel = std::move(kernel);
  // The simulator works in place; it may be told to ask for something all the
  // same, as real operators do.
  *workspace_size_ = cannsim_workspace();
  *executor_ = Executors::Get().Add(std::move(made));
  return ACLNN_SUCCESS;
}

aclnnStatus Phase2(const char* name, void* workspace, uint64_t workspace_size,
                   aclOpExecutor* executor, aclrtStream stream,
                   const void* caller) {
  const std::unique_ptr<void, void (*)(void*)> scope(
      cannsim_enter(name, caller), cannsim_leave);
  if (executor == nullptr) {
    return Complaint(name, ACLNN_ERR_PARAM_NULLPTR, "executor is null");
  }
  const auto found = Executors::Get().Find(executor);
  if (found == nullptr || found->name != name) {
    return Complaint(name, ACLNN_ERR_INNER_NOT_TRANS_EXECUTOR,
                     "this executor was used before, destroyed, or made by "
                     "another operator");
  }
  const uint64_t needed = cannsim_workspace();
  if (workspace == nullptr && (workspace_size > 0 || needed > 0)) {
    return Complaint(name, ACLNN_ERR_PARAM_NULLPTR, "workspace is null");
  }
  if (workspace_size < needed) {
    return Complaint(name, ACLNN_ERR_PARAM_INVALID,
                     "workspace is smaller than phase 1 asked for");
  }
  // Noted as a use: two streams must not share it without an order.
  if (needed > 0 &&
      cannsim_worker(workspace, workspace_size, "written") == nullptr) {
    return ACLNN_ERR_RUNTIME_ERROR;
  }
  Arrays arrays(found->tensors.size());
  for (size_t i = 0; i < arrays.size(); ++i) {
    if (!found->present[i]) continue;
    const char* use = found->outputs[i] ? "written" : "read";
    if (!Locate(found->tensors[i], use, &arrays[i])) {
      return ACLNN_ERR_RUNTIME_ERROR;  // the message is the runtime's
    }
  }
  if (!found->repeatable) Executors::Get().Remove(executor);
  TaskCost cost = CostOf(found->name, arrays, found->outputs);
  Kernel kernel =
      WithQuirks(name, arrays, found->outputs, found->kernel, &cost);
  const int code = cannsim_launch_op(
      stream, name, cost,
      [kernel = std::move(kernel), arrays = std::move(arrays)] {
        return kernel(arrays);
      });
  return code == 0 ? ACLNN_SUCCESS : ACLNN_ERR_RUNTIME_ERROR;
}

namespace {

// The i-th tensor among those that `wanted` takes, gets another address.
template <typename Wanted>
int SetAddress(aclOpExecutor* executor, size_t index, void* address,
               Wanted wanted) {
  if (executor == nullptr || address == nullptr) {
    return cannsim_fail(ACLNN_ERR_INNER_NULLPTR, "null executor or address");
  }
  const auto found = Executors::Get().Find(executor);
  if (found == nullptr || !found->repeatable) {
    return cannsim_fail(ACLNN_ERR_PARAM_INVALID,
                        "the executor is not repeatable, or is gone");
  }
  size_t n = 0;
  for (size_t i = 0; i < found->tensors.size(); ++i) {
    if (!wanted(found->outputs[i])) continue;
    if (n++ != index) continue;
    if (!found->present[i]) break;
    found->tensors[i].data = address;
    return ACLNN_SUCCESS;
  }
  return cannsim_fail(ACLNN_ERR_PARAM_INVALID,
                      "no tensor has this index, or it was null in phase 1");
}

}  // namespace
}  // namespace cannsim

extern "C" {

aclnnStatus aclSetAclOpExecutorRepeatable(aclOpExecutor* executor) {
  const auto found = cannsim::Executors::Get().Find(executor);
  if (found == nullptr) {
    return cannsim_fail(ACLNN_ERR_INNER_NULLPTR, "no such live executor");
  }
  found->repeatable = true;
  return ACLNN_SUCCESS;
}

aclnnStatus aclDestroyAclOpExecutor(aclOpExecutor* executor) {
  if (executor == nullptr || !cannsim::Executors::Get().Remove(executor)) {
    return cannsim_fail(ACLNN_ERR_INNER_NULLPTR, "no such live executor");
  }
  return ACLNN_SUCCESS;
}

aclnnStatus aclSetTensorAddr(aclOpExecutor* executor, const size_t index,
                             aclTensor*, void* addr) {
  return cannsim::SetAddress(executor, index, addr, [](bool) { return true; });
}

aclnnStatus aclSetInputTensorAddr(aclOpExecutor* executor, const size_t index,
                                  aclTensor*, void* addr) {
  return cannsim::SetAddress(executor, index, addr,
                             [](bool output) { return !output; });
}

aclnnStatus aclSetOutputTensorAddr(aclOpExecutor* executor, const size_t index,
                                   aclTensor*, void* addr) {
  return cannsim::SetAddress(executor, index, addr,
                             [](bool output) { return output; });
}

// Lists are taken apart in phase 1, so that their members have no index here.
aclnnStatus aclSetDynamicTensorAddr(aclOpExecutor*, size_t, const size_t,
                                    aclTensorList*, void*) {
  return cannsim_fail(ACLNN_ERR_PARAM_INVALID,
                      "cannsim does not exchange members of lists");
}

aclnnStatus aclSetDynamicInputTensorAddr(aclOpExecutor*, size_t, const size_t,
                                         aclTensorList*, void*) {
  return cannsim_fail(ACLNN_ERR_PARAM_INVALID,
                      "cannsim does not exchange members of lists");
}

aclnnStatus aclSetDynamicOutputTensorAddr(aclOpExecutor*, size_t, const size_t,
                                          aclTensorList*, void*) {
  return cannsim_fail(ACLNN_ERR_PARAM_INVALID,
                      "cannsim does not exchange members of lists");
}

}  // extern "C"
