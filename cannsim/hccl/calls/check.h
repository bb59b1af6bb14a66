// SPDX-License-Identifier: Apache-2.0
// The arguments of a call, checked one after another; the first complaint
// counts.
#ifndef BELAY_CANNSIM_HCCL_CALLS_CHECK_H_
#define BELAY_CANNSIM_HCCL_CALLS_CHECK_H_

#include <cstdint>
#include <memory>
#include <string>

#include "cannsim/hccl/collective.h"

namespace cannsim::hccl {

class Check {
 public:
  Check(const char* api, HcclComm comm);

  bool ok() const { return result_ == HCCL_SUCCESS; }
  HcclResult result() const { return result_; }
  const std::shared_ptr<Communicator>& communicator() const { return found_; }
  uint32_t n_ranks() const { return found_->n_ranks(); }
  uint32_t rank() const { return found_->rank(); }

  Check& Type(HcclDataType dtype);
  Check& Same(HcclDataType a, HcclDataType b);
  Check& Reduction(HcclDataType dtype, HcclReduceOp op);
  Check& Root(uint32_t root);
  Check& Peer(uint32_t peer, bool may_be_own);
  Check& NotNull(const void* argument, const char* what);
  Check& NotTheSame(const void* a, const void* b);

  // The device memory of `count` elements; null for none or after a complaint.
  Piece Buffer(const void* at, uint64_t count, HcclDataType dtype,
               const char* use, const char* what);
  // The same, of `count` elements for each rank.
  Piece Buffers(const void* at, uint64_t count, HcclDataType dtype,
                const char* use, const char* what);
  // Pieces of one buffer: counts and places in elements, an entry a rank.
  std::vector<Piece> Pieces(const void* at, const uint64_t* counts,
                            const uint64_t* places, HcclDataType dtype,
                            const char* use, const char* what);

  HcclResult Complain(HcclResult result, const std::string& text);

 private:
  const char* api_;
  std::shared_ptr<Communicator> found_;
  HcclResult result_ = HCCL_SUCCESS;
};

// `n` equal pieces, one behind another.
std::vector<Piece> Cut(const Piece& whole, uint32_t n);

}  // namespace cannsim::hccl

#endif  // BELAY_CANNSIM_HCCL_CALLS_CHECK_H_
