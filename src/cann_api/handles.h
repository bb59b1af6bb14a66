// SPDX-License-Identifier: Apache-2.0
// What the runtime gives out, each given back once.
#ifndef BELAY_CANN_API_HANDLES_H_
#define BELAY_CANN_API_HANDLES_H_

#include <utility>

#include "cann_api/api.h"

namespace belay::cann_api {

// `Destroy` is the member of Api that gives a `T` back. The Api must live
// longer; whatever else the call needs (a current context) is the owner's care.
template <typename T, auto Destroy>
class Owned {
 public:
  Owned() = default;
  Owned(const Api* api, T value) : api_(api), value_(value) {}
  Owned(Owned&& other) noexcept
      : api_(other.api_), value_(std::exchange(other.value_, nullptr)) {}
  Owned& operator=(Owned&& other) noexcept {
    if (this != &other) {
      Reset();
      api_ = other.api_;
      value_ = std::exchange(other.value_, nullptr);
    }
    return *this;
  }
  ~Owned() { Reset(); }

  T get() const { return value_; }
  explicit operator bool() const { return value_ != nullptr; }
  // Gives it back now; the call's code, 0 when there was nothing.
  int Reset() {
    if (value_ == nullptr) return 0;
    return (api_->*Destroy)(std::exchange(value_, nullptr));
  }
  T Release() { return std::exchange(value_, nullptr); }

 private:
  const Api* api_ = nullptr;
  T value_ = nullptr;
};

using Context = Owned<aclrtContext, &Api::aclrtDestroyContext>;
using Stream = Owned<aclrtStream, &Api::aclrtDestroyStream>;
using Event = Owned<aclrtEvent, &Api::aclrtDestroyEvent>;
using DeviceMemory = Owned<void*, &Api::aclrtFree>;
using PinnedMemory = Owned<void*, &Api::aclrtFreeHost>;
using Tensor = Owned<const aclTensor*, &Api::aclDestroyTensor>;
using Scalar = Owned<const aclScalar*, &Api::aclDestroyScalar>;
using IntArray = Owned<const aclIntArray*, &Api::aclDestroyIntArray>;
using TensorList = Owned<const aclTensorList*, &Api::aclDestroyTensorList>;
using Executor = Owned<aclOpExecutor*, &Api::aclDestroyAclOpExecutor>;

}  // namespace belay::cann_api

#endif  // BELAY_CANN_API_HANDLES_H_
