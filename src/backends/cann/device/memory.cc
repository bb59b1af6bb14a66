// SPDX-License-Identifier: Apache-2.0
#include "backends/cann/device/memory.h"

#include <algorithm>
#include <cstring>

#include "backends/cann/device/compute.h"

namespace belay::cann {
namespace {

constexpr size_t kSlabBytes = size_t{32} << 20;
constexpr size_t kMaxPromises = 256;

size_t RoundUp(size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

std::byte* Bytes(const cann_api::PinnedMemory& memory) {
  return static_cast<std::byte*>(memory.get());
}

}  // namespace

StatusOr<void*> WeightMemory::Take(size_t bytes) {
  const size_t wanted = RoundUp(std::max<size_t>(bytes, 1));
  if (wanted > left_) {
    const size_t slab = std::max(wanted, kSlabBytes);
    BELAY_ASSIGN_OR_RETURN(cann_api::DeviceMemory memory,
                           runtime_.Allocate(slab));
    bytes_ += slab;
    auto* start = static_cast<std::byte*>(memory.get());
    slabs_.push_back(std::move(memory));
    // A large tensor of its own leaves the slab in use as it is.
    if (slab - wanted < left_) return static_cast<void*>(start);
    next_ = start;
    left_ = slab;
  }
  void* taken = next_;
  next_ += wanted;
  left_ -= wanted;
  return taken;
}

Status WeightMemory::Copy(void* device, const void* host, size_t bytes) const {
  if (bytes == 0) return absl::OkStatus();
  runtime_.Use();
  return runtime_.Check(
      runtime_.api().aclrtMemcpy(device, bytes, host, bytes,
                                 cann_api::ACL_MEMCPY_HOST_TO_DEVICE),
      "aclrtMemcpy", std::to_string(bytes) + " bytes of weights");
}

StatusOr<void*> WeightMemory::Put(const void* host, size_t bytes) {
  BELAY_ASSIGN_OR_RETURN(void* device, Take(bytes));
  BELAY_RETURN_IF_ERROR(Copy(device, host, bytes));
  return device;
}

Status Copies::Create(size_t in_bytes, size_t out_bytes) {
  BELAY_ASSIGN_OR_RETURN(in_, runtime_.AllocatePinned(in_bytes));
  BELAY_ASSIGN_OR_RETURN(out_, runtime_.AllocatePinned(out_bytes));
  in_bytes_ = in_bytes;
  out_bytes_ = out_bytes;
  promises_.reserve(kMaxPromises);
  return absl::OkStatus();
}

Status Copies::WaitAndDeliver() {
  BELAY_RETURN_IF_ERROR(runtime_.Synchronize(timeout_ms_));
  Deliver();
  return absl::OkStatus();
}

Status Copies::In(void* device, const void* host, size_t bytes) {
  runtime_.Use();
  auto* to = static_cast<std::byte*>(device);
  const auto* from = static_cast<const std::byte*>(host);
  while (bytes > 0) {
    if (in_used_ == in_bytes_) BELAY_RETURN_IF_ERROR(WaitAndDeliver());
    const size_t n = std::min(bytes, in_bytes_ - in_used_);
    std::byte* staged = Bytes(in_) + in_used_;
    std::memcpy(staged, from, n);
    BELAY_RETURN_IF_ERROR(runtime_.CheckStream(
        runtime_.api().aclrtMemcpyAsync(to, n, staged, n,
                                        cann_api::ACL_MEMCPY_HOST_TO_DEVICE,
                                        runtime_.stream()),
        "aclrtMemcpyAsync", "host to device"));
    in_used_ = std::min(in_bytes_, RoundUp(in_used_ + n));
    to += n;
    from += n;
    bytes -= n;
  }
  return absl::OkStatus();
}

Status Copies::Out(void* host, const void* device, size_t bytes) {
  runtime_.Use();
  auto* to = static_cast<std::byte*>(host);
  const auto* from = static_cast<const std::byte*>(device);
  while (bytes > 0) {
    if (out_used_ == out_bytes_ || promises_.size() == kMaxPromises) {
      BELAY_RETURN_IF_ERROR(WaitAndDeliver());
    }
    const size_t n = std::min(bytes, out_bytes_ - out_used_);
    std::byte* staged = Bytes(out_) + out_used_;
    BELAY_RETURN_IF_ERROR(runtime_.CheckStream(
        runtime_.api().aclrtMemcpyAsync(staged, n, from, n,
                                        cann_api::ACL_MEMCPY_DEVICE_TO_HOST,
                                        runtime_.stream()),
        "aclrtMemcpyAsync", "device to host"));
    promises_.push_back({to, staged, n});
    out_used_ = std::min(out_bytes_, RoundUp(out_used_ + n));
    to += n;
    from += n;
    bytes -= n;
  }
  return absl::OkStatus();
}

void Copies::Deliver() {
  for (const Promise& p : promises_) std::memcpy(p.host, p.staged, p.bytes);
  Drop();
}

void Copies::Drop() {
  promises_.clear();
  in_used_ = 0;
  out_used_ = 0;
}

}  // namespace belay::cann
