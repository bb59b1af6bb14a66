// SPDX-License-Identifier: Apache-2.0
// The two-phase protocol. Phase 1 checks, copies the descriptors and keeps the
// work as a function of addresses; phase 2 finds where the addresses really
// lie, queues the work, and consumes the executor unless it is repeatable.
#ifndef BELAY_CANNSIM_NNOP_EXECUTOR_H_
#define BELAY_CANNSIM_NNOP_EXECUTOR_H_

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include "aclnn/aclnn_base.h"
#include "cannsim/nnop/objects.h"
#include "cannsim/private/runtime_link.h"

namespace cannsim {

// A tensor while the operator runs: its bytes where the simulator reaches
// them. An argument that the program left out has no elements and is absent.
struct Array {
  std::vector<int64_t> dims;
  std::vector<int64_t> strides;  // in elements
  aclDataType dtype = ACL_DT_UNDEFINED;
  char* base = nullptr;  // element 0 of the view
  bool present = false;

  int rank() const { return static_cast<int>(dims.size()); }
  int64_t n_elements() const {
    int64_t n = 1;
    for (const int64_t dim : dims) n *= dim;
    return n;
  }
};

// All tensors of an operator in the order in which phase 1 named them.
using Arrays = std::vector<Array>;

// Runs in the stream's thread. 0, or an error code of acl after Fail.
using Kernel = std::function<int(const Arrays&)>;

// Phase 1 of one operator.
//
//   Phase1 call("aclnnAdd", workspace_size, executor);
//   call.In(self, "self").In(other, "other").Out(out, "out");
//   call.Require(self->dims == out->dims, "the shapes differ");
//   return call.Finish([](const Arrays& a) { ... });
//
// After the first complaint (161001 null, 161002 invalid) the rest is passed
// over and Finish returns it; `ok()` says whether tensors may be looked at.
class Phase1 {
 public:
  Phase1(const char* name, uint64_t* workspace_size, aclOpExecutor** executor);

  Phase1& In(const aclTensor* tensor, const char* what);
  Phase1& Out(const aclTensor* tensor, const char* what);
  // May be null: then the array is not present.
  Phase1& InOptional(const aclTensor* tensor, const char* what);
  Phase1& OutOptional(const aclTensor* tensor, const char* what);
  // Other arguments that must not be null.
  Phase1& NotNull(const void* argument, const char* what);
  Phase1& Require(bool condition, const std::string& otherwise);
  // 561003 on any other generation: no kernel was built for it. Comes before
  // all other checks, as a client that only probes expects.
  Phase1& OnlyOn(std::initializer_list<Generation> generations);

  bool ok() const { return code_ == ACLNN_SUCCESS; }
  aclnnStatus Finish(Kernel kernel);

 private:
  Phase1& Add(const aclTensor* tensor, const char* what, bool output,
              bool optional);
  void Complain(aclnnStatus code, const std::string& text);

  const char* name_;
  uint64_t* workspace_size_;
  aclOpExecutor** executor_;
  aclnnStatus code_ = ACLNN_SUCCESS;
  std::vector<aclTensor> tensors_;
  std::vector<bool> outputs_;
  std::vector<const aclTensor*> originals_;
};

// Phase 2 of any operator.
aclnnStatus Phase2(const char* name, void* workspace, uint64_t workspace_size,
                   aclOpExecutor* executor, aclrtStream stream,
                   const void* caller);

}  // namespace cannsim

#endif  // BELAY_CANNSIM_NNOP_EXECUTOR_H_
