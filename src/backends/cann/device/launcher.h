// SPDX-License-Identifier: Apache-2.0
// Launches operators with executors that are made once: the same operator with
// the same shapes, addresses and numbers runs again without its first phase.
#ifndef BELAY_BACKENDS_CANN_DEVICE_LAUNCHER_H_
#define BELAY_BACKENDS_CANN_DEVICE_LAUNCHER_H_

#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "backends/cann/device/array.h"
#include "cann_api/handles.h"
#include "cann_api/runtime.h"

namespace belay::cann {

// Arguments that are no tensor.
struct Num {  // a scalar
  double value = 0;
  aclDataType dtype = cann_api::ACL_FLOAT;
};
struct Axes {  // a list of integers
  std::array<int64_t, 4> values = {};
  size_t n = 0;
  Axes(std::initializer_list<int64_t> list) {
    for (const int64_t v : list) values[n++] = v;
  }
};
struct One {  // a list of one tensor
  Array tensor;
};
struct None {  // null
  template <typename T>
  operator T*() const {  // NOLINT: implicit
    return nullptr;
  }
};

class Launcher {
 public:
  explicit Launcher(cann_api::Runtime& runtime) : runtime_(runtime) {}
  // Executors go before the device; nothing may be running.
  ~Launcher() = default;

  // Where operators may put what they need; set by the plan.
  void SetWorkspace(void* workspace, size_t bytes) {
    workspace_ = workspace;
    workspace_bytes_ = bytes;
  }

  // The operator of ours that launches, for messages.
  void SetOp(const char* op) { op_ = op; }
  const char* op() const { return op_; }

  // Queues one operator. Once something failed, nothing is queued until
  // TakeFault(): the step is lost anyway.
  template <typename... Formal, typename... Actual>
  void Launch(const cann_api::Operator<void(Formal...)>& op,
              const Actual&... args) {
    if (!fault_.ok()) return;
    key_.clear();
    key_.push_back(reinterpret_cast<uintptr_t>(&op));
    (AddKey(args), ...);
    Entry* entry = Find();
    if (entry == nullptr) {
      auto made = std::make_unique<Entry>();
      auto held = std::make_tuple(Hold(args, *made)...);
      const int code = std::apply(
          [&](const auto&... h) {
            return op.plan(static_cast<Formal>(h)..., &made->bytes,
                           &made->executor);
          },
          held);
      entry = Keep(code, op.name(), std::move(made));
    }
    if (entry != nullptr) Run(op, *entry);
  }

  void Fail(const Status& status) {
    if (fault_.ok()) fault_ = status;
  }
  bool ok() const { return fault_.ok(); }
  // The first failure since the last call.
  Status TakeFault() { return std::exchange(fault_, absl::OkStatus()); }

  // Forgets executors when there are too many. The stream must be idle.
  void Trim();
  void Clear() { entries_.clear(); }
  size_t n_executors() const { return entries_.size(); }

 private:
  struct Entry {
    std::vector<uint64_t> key;
    uint64_t bytes = 0;  // of workspace
    cann_api::aclOpExecutor* executor = nullptr;
    // It is used again; else its first run consumes it.
    cann_api::Executor kept;
    std::vector<cann_api::Tensor> tensors;
    std::vector<cann_api::Scalar> scalars;
    std::vector<cann_api::IntArray> arrays;
    std::vector<cann_api::TensorList> lists;
  };
  // What a parameter of the interface takes, const or not.
  template <typename T>
  struct Pointer {
    T* value;
    operator T*() const { return value; }        // NOLINT: implicit
    operator const T*() const { return value; }  // NOLINT: implicit
  };

  void AddKey(const Array& a);
  void AddKey(const Num& n) {
    key_.push_back(std::bit_cast<uint64_t>(n.value));
    key_.push_back(static_cast<uint64_t>(n.dtype));
  }
  void AddKey(const Axes& axes) {
    key_.push_back(axes.n);
    for (size_t i = 0; i < axes.n; ++i) {
      key_.push_back(static_cast<uint64_t>(axes.values[i]));
    }
  }
  void AddKey(const One& one) { AddKey(one.tensor); }
  void AddKey(const None&) { key_.push_back(0); }
  void AddKey(double value) { key_.push_back(std::bit_cast<uint64_t>(value)); }
  template <typename T>
  requires(std::is_integral_v<T> || std::is_enum_v<T>) void AddKey(T value) {
    key_.push_back(static_cast<uint64_t>(value));
  }

  Pointer<cann_api::aclTensor> Hold(const Array& a, Entry& entry);
  Pointer<cann_api::aclScalar> Hold(const Num& n, Entry& entry);
  Pointer<cann_api::aclIntArray> Hold(const Axes& axes, Entry& entry);
  Pointer<cann_api::aclTensorList> Hold(const One& one, Entry& entry);
  static None Hold(const None& none, Entry&) { return none; }
  template <typename T>
  requires std::is_arithmetic_v<T> || std::is_enum_v<T>
  static T Hold(T value, Entry&) { return value; }

  cann_api::aclTensor* Describe(const Array& a) const;
  Entry* Find();
  // Null when it failed.
  Entry* Keep(int code, const char* name, std::unique_ptr<Entry> entry);
  template <typename Op>
  void Run(const Op& op, Entry& entry) {
    const int code = op.run(entry.bytes == 0 ? nullptr : workspace_,
                            entry.bytes, entry.executor, runtime_.stream());
    if (code != 0) Fail(runtime_.CheckStream(code, op.name(), op_));
    if (!entry.kept) once_.reset();
  }

  cann_api::Runtime& runtime_;
  void* workspace_ = nullptr;
  size_t workspace_bytes_ = 0;
  const char* op_ = "";
  std::vector<uint64_t> key_;  // of the launch at hand
  std::unordered_multimap<uint64_t, std::unique_ptr<Entry>> entries_;
  std::unique_ptr<Entry> once_;  // one that cannot be kept
  Status fault_;
};

}  // namespace belay::cann

#endif  // BELAY_BACKENDS_CANN_DEVICE_LAUNCHER_H_
