// SPDX-License-Identifier: Apache-2.0
#include "cannsim/hccl/calls/check.h"

#include <fmt/format.h>

#include <algorithm>

#include "cannsim/hccl/reduce.h"
#include "cannsim/hccl/say.h"

namespace cannsim::hccl {

Check::Check(const char* api, HcclComm comm) : api_(api) {
  if (comm == nullptr) {
    Complain(HCCL_E_PTR, "comm is null");
    return;
  }
  found_ = Find(comm);
  if (found_ == nullptr) {
    Complain(HCCL_E_PARA, "comm is no live communicator");
  }
}

HcclResult Check::Complain(HcclResult result, const std::string& text) {
  if (ok()) result_ = Refuse(result, kBadArgument, api_, text);
  return result_;
}

Check& Check::NotNull(const void* argument, const char* what) {
  if (ok() && argument == nullptr) {
    Complain(HCCL_E_PTR, fmt::format("{} is null", what));
  }
  return *this;
}

Check& Check::NotTheSame(const void* a, const void* b) {
  if (ok() && a == b && a != nullptr) {
    Complain(HCCL_E_PARA, "sendBuf and recvBuf are the same");
  }
  return *this;
}

Check& Check::Type(HcclDataType dtype) {
  if (ok() && BytesOf(dtype) == 0) {
    Complain(HCCL_E_NOT_SUPPORT,
             fmt::format("{} is no data type", static_cast<int>(dtype)));
  }
  return *this;
}

Check& Check::Same(HcclDataType a, HcclDataType b) {
  if (ok() && a != b) {
    Complain(HCCL_E_PARA,
             fmt::format("sends {} and receives {}", NameOf(a), NameOf(b)));
  }
  return *this;
}

Check& Check::Reduction(HcclDataType dtype, HcclReduceOp op) {
  Type(dtype);
  if (!ok()) return *this;
  if (static_cast<uint32_t>(op) > HCCL_REDUCE_MIN) {
    Complain(HCCL_E_NOT_SUPPORT,
             fmt::format("{} is no reduction", static_cast<int>(op)));
  } else if (!CanReduce(dtype)) {
    Complain(HCCL_E_NOT_SUPPORT,
             fmt::format("{} cannot be reduced", NameOf(dtype)));
  }
  return *this;
}

Check& Check::Root(uint32_t root) {
  if (ok() && root >= n_ranks()) {
    Complain(HCCL_E_PARA, fmt::format("root {} of {} ranks", root, n_ranks()));
  }
  return *this;
}

Check& Check::Peer(uint32_t peer, bool may_be_own) {
  if (ok() && (peer >= n_ranks() || (peer == rank() && !may_be_own))) {
    Complain(HCCL_E_PARA, fmt::format("rank {} of {} exchanges with rank {}",
                                      rank(), n_ranks(), peer));
  }
  return *this;
}

Piece Check::Buffer(const void* at, uint64_t count, HcclDataType dtype,
                    const char* use, const char* what) {
  Piece piece;
  if (!ok() || count == 0) return piece;
  // Sums of what all ranks send must not overflow either.
  constexpr uint64_t kMost = uint64_t{1} << 48;
  if (count > kMost / BytesOf(dtype)) {
    Complain(HCCL_E_PARA,
             fmt::format("{}: {} elements are too many", what, count));
    return piece;
  }
  NotNull(at, what);
  if (!ok()) return piece;
  piece.bytes = count * BytesOf(dtype);
  piece.at = cannsim_worker(at, piece.bytes, use);
  if (piece.at == nullptr) {
    result_ = HCCL_E_PARA;  // the message is the runtime's
    cannsim_log("HCCL", api_,
                fmt::format("{} is not one buffer of {} bytes of device memory",
                            what, piece.bytes)
                    .c_str());
    return {};
  }
  return piece;
}

Piece Check::Buffers(const void* at, uint64_t count, HcclDataType dtype,
                     const char* use, const char* what) {
  if (!ok()) return {};
  uint64_t all = 0;
  if (__builtin_mul_overflow(count, uint64_t{n_ranks()}, &all)) {
    Complain(HCCL_E_PARA, fmt::format("{}: {} elements for each rank are too "
                                      "many",
                                      what, count));
    return {};
  }
  return Buffer(at, all, dtype, use, what);
}

std::vector<Piece> Check::Pieces(const void* at, const uint64_t* counts,
                                 const uint64_t* places, HcclDataType dtype,
                                 const char* use, const char* what) {
  std::vector<Piece> pieces(ok() ? n_ranks() : 0);
  for (uint32_t r = 0; ok() && r < n_ranks(); ++r) {
    uint64_t first = 0;
    if (counts[r] == 0) continue;
    if (__builtin_mul_overflow(places[r], uint64_t{BytesOf(dtype)}, &first) ||
        first > uint64_t{1} << 48) {
      Complain(HCCL_E_PARA, fmt::format("{}: displacement {} of rank {} is too "
                                        "large",
                                        what, places[r], r));
      return pieces;
    }
    NotNull(at, what);
    if (!ok()) return pieces;
    pieces[r] = Buffer(static_cast<const char*>(at) + first, counts[r], dtype,
                       use, what);
  }
  return pieces;
}

std::vector<Piece> Cut(const Piece& whole, uint32_t n) {
  std::vector<Piece> pieces(n);
  const uint64_t bytes = whole.bytes / n;
  for (uint32_t r = 0; bytes > 0 && r < n; ++r) {
    pieces[r] = {.at = whole.at + r * bytes, .bytes = bytes};
  }
  return pieces;
}

}  // namespace cannsim::hccl
