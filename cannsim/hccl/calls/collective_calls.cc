// SPDX-License-Identifier: Apache-2.0
// The collectives of the C interface.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "cannsim/hccl/calls/check.h"
#include "cannsim/hccl/reduce.h"
#include "cannsim/hccl/say.h"
#include "hccl/hccl.h"

namespace cannsim::hccl {
namespace {

const uint64_t* Numbers(const void* counts) {
  return static_cast<const uint64_t*>(counts);
}

// Places of pieces that lie one behind another.
std::vector<uint64_t> PlacesOf(const std::vector<uint64_t>& counts) {
  std::vector<uint64_t> places(counts.size());
  std::exclusive_scan(counts.begin(), counts.end(), places.begin(),
                      uint64_t{0});
  return places;
}

HcclResult Finish(const Check& check, Collective collective, aclrtStream stream,
                  const void* caller) {
  if (!check.ok()) return check.result();
  return Queue(check.communicator(), std::move(collective), stream, caller);
}

// Each rank reduces a part and sends it to all: every rank gets the same bits.
void ShareParts(const Check& check, const Piece& send, const Piece& recv,
                size_t element, Collective* collective) {
  const uint32_t n = check.n_ranks();
  const uint64_t count = recv.bytes / element;
  for (uint32_t r = 0; r < n; ++r) {
    const uint64_t begin = count * r / n * element;
    const uint64_t bytes = count * (r + 1) / n * element - begin;
    collective->first.send[r] = {.at = send.at + begin, .bytes = bytes};
    collective->second.recv.push_back({.at = recv.at + begin, .bytes = bytes});
  }
  const Piece mine = collective->second.recv[check.rank()];
  for (Piece& piece : collective->first.recv) piece.bytes = mine.bytes;
  collective->second.send.assign(n, mine);
  collective->reduced = mine.at;
  collective->n_reduced = mine.bytes / element;
}

struct VArgs {
  const void* send;
  const uint64_t* send_counts;
  const uint64_t* send_places;
  const void* recv;
  const uint64_t* recv_counts;
  const uint64_t* recv_places;
};

void FillAlltoAll(Check& check, const VArgs& v, HcclDataType dtype,
                  Collective* collective) {
  collective->dtype = dtype;
  collective->first.send = check.Pieces(v.send, v.send_counts, v.send_places,
                                        dtype, "read", "sendBuf");
  collective->first.recv = check.Pieces(v.recv, v.recv_counts, v.recv_places,
                                        dtype, "written", "recvBuf");
}

}  // namespace
}  // namespace cannsim::hccl

using cannsim::hccl::BytesOf;
using cannsim::hccl::Check;
using cannsim::hccl::Collective;
using cannsim::hccl::Cut;
using cannsim::hccl::FillAlltoAll;
using cannsim::hccl::Finish;
using cannsim::hccl::Kind;
using cannsim::hccl::Numbers;
using cannsim::hccl::Piece;
using cannsim::hccl::PlacesOf;
using cannsim::hccl::ShareParts;

extern "C" {

HcclResult HcclAllReduce(void* sendBuf, void* recvBuf, uint64_t count,
                         HcclDataType dataType, HcclReduceOp op, HcclComm comm,
                         aclrtStream stream) {
  CANNSIM_HCCL_CALL(HcclAllReduce);
  Check check("HcclAllReduce", comm);
  check.Reduction(dataType, op);
  const Piece send = check.Buffer(sendBuf, count, dataType, "read", "sendBuf");
  const Piece recv =
      check.Buffer(recvBuf, count, dataType, "written", "recvBuf");
  if (!check.ok()) return check.result();
  Collective call(Kind::kAllReduce, check.n_ranks());
  call.dtype = dataType;
  call.op = op;
  call.count = count;
  ShareParts(check, send, recv, BytesOf(dataType), &call);
  return Finish(check, std::move(call), stream, caller);
}

HcclResult HcclAllGather(void* sendBuf, void* recvBuf, uint64_t sendCount,
                         HcclDataType dataType, HcclComm comm,
                         aclrtStream stream) {
  CANNSIM_HCCL_CALL(HcclAllGather);
  Check check("HcclAllGather", comm);
  check.Type(dataType);
  const Piece send =
      check.Buffer(sendBuf, sendCount, dataType, "read", "sendBuf");
  const Piece recv =
      check.Buffers(recvBuf, sendCount, dataType, "written", "recvBuf");
  if (!check.ok()) return check.result();
  Collective call(Kind::kAllGather, check.n_ranks());
  call.dtype = dataType;
  call.count = sendCount;
  call.first.send.assign(check.n_ranks(), send);
  call.first.recv = Cut(recv, check.n_ranks());
  return Finish(check, std::move(call), stream, caller);
}

HcclResult HcclAllGatherV(void* sendBuf, uint64_t sendCount, void* recvBuf,
                          const void* recvCounts, const void* recvDispls,
                          HcclDataType dataType, HcclComm comm,
                          aclrtStream stream) {
  CANNSIM_HCCL_CALL(HcclAllGatherV);
  Check check("HcclAllGatherV", comm);
  check.NotNull(recvCounts, "recvCounts").NotNull(recvDispls, "recvDispls");
  check.Type(dataType);
  const Piece send =
      check.Buffer(sendBuf, sendCount, dataType, "read", "sendBuf");
  if (!check.ok()) return check.result();
  Collective call(Kind::kAllGatherV, check.n_ranks());
  call.dtype = dataType;
  call.first.send.assign(check.n_ranks(), send);
  call.first.recv =
      check.Pieces(recvBuf, Numbers(recvCounts), Numbers(recvDispls), dataType,
                   "written", "recvBuf");
  if (check.ok() && Numbers(recvCounts)[check.rank()] != sendCount) {
    check.Complain(HCCL_E_PARA,
                   fmt::format("sendCount is {}, the rank's own recvCounts {}",
                               sendCount, Numbers(recvCounts)[check.rank()]));
  }
  return Finish(check, std::move(call), stream, caller);
}

HcclResult HcclReduceScatter(void* sendBuf, void* recvBuf, uint64_t recvCount,
                             HcclDataType dataType, HcclReduceOp op,
                             HcclComm comm, aclrtStream stream) {
  CANNSIM_HCCL_CALL(HcclReduceScatter);
  Check check("HcclReduceScatter", comm);
  check.Reduction(dataType, op);
  const Piece send =
      check.Buffers(sendBuf, recvCount, dataType, "read", "sendBuf");
  const Piece recv =
      check.Buffer(recvBuf, recvCount, dataType, "written", "recvBuf");
  if (!check.ok()) return check.result();
  Collective call(Kind::kReduceScatter, check.n_ranks());
  call.dtype = dataType;
  call.op = op;
  call.count = recvCount;
  call.first.send = Cut(send, check.n_ranks());
  for (Piece& piece : call.first.recv) piece.bytes = recv.bytes;
  call.n_reduced = recvCount;
  call.reduced = recv.at;
  return Finish(check, std::move(call), stream, caller);
}

HcclResult HcclReduceScatterV(void* sendBuf, const void* sendCounts,
                              const void* sendDispls, void* recvBuf,
                              uint64_t recvCount, HcclDataType dataType,
                              HcclReduceOp op, HcclComm comm,
                              aclrtStream stream) {
  CANNSIM_HCCL_CALL(HcclReduceScatterV);
  Check check("HcclReduceScatterV", comm);
  check.NotNull(sendCounts, "sendCounts").NotNull(sendDispls, "sendDispls");
  check.Reduction(dataType, op);
  const Piece recv =
      check.Buffer(recvBuf, recvCount, dataType, "written", "recvBuf");
  if (!check.ok()) return check.result();
  Collective call(Kind::kReduceScatterV, check.n_ranks());
  call.dtype = dataType;
  call.op = op;
  call.first.send =
      check.Pieces(sendBuf, Numbers(sendCounts), Numbers(sendDispls), dataType,
                   "read", "sendBuf");
  if (check.ok() && Numbers(sendCounts)[check.rank()] != recvCount) {
    check.Complain(HCCL_E_PARA,
                   fmt::format("recvCount is {}, the rank's own sendCounts {}",
                               recvCount, Numbers(sendCounts)[check.rank()]));
  }
  for (Piece& piece : call.first.recv) piece.bytes = recv.bytes;
  call.n_reduced = recvCount;
  call.reduced = recv.at;
  return Finish(check, std::move(call), stream, caller);
}

HcclResult HcclBroadcast(void* buf, uint64_t count, HcclDataType dataType,
                         uint32_t root, HcclComm comm, aclrtStream stream) {
  CANNSIM_HCCL_CALL(HcclBroadcast);
  Check check("HcclBroadcast", comm);
  check.Type(dataType).Root(root);
  if (!check.ok()) return check.result();
  const bool is_root = check.rank() == root;
  const Piece whole =
      check.Buffer(buf, count, dataType, is_root ? "read" : "written", "buf");
  Collective call(Kind::kBroadcast, check.n_ranks());
  call.dtype = dataType;
  call.root = root;
  call.count = count;
  if (is_root) {
    call.first.send.assign(check.n_ranks(), whole);
    call.first.send[root] = call.first.recv[root] = {};
  } else {
    call.first.recv[root] = whole;
  }
  return Finish(check, std::move(call), stream, caller);
}

HcclResult HcclReduce(void* sendBuf, void* recvBuf, uint64_t count,
                      HcclDataType dataType, HcclReduceOp op, uint32_t root,
                      HcclComm comm, aclrtStream stream) {
  CANNSIM_HCCL_CALL(HcclReduce);
  Check check("HcclReduce", comm);
  check.Reduction(dataType, op).Root(root);
  if (!check.ok()) return check.result();
  Collective call(Kind::kReduce, check.n_ranks());
  call.dtype = dataType;
  call.op = op;
  call.root = root;
  call.count = count;
  call.first.send[root] =
      check.Buffer(sendBuf, count, dataType, "read", "sendBuf");
  if (check.rank() == root) {
    const Piece recv =
        check.Buffer(recvBuf, count, dataType, "written", "recvBuf");
    for (Piece& piece : call.first.recv) piece.bytes = recv.bytes;
    call.n_reduced = count;
    call.reduced = recv.at;
  }
  return Finish(check, std::move(call), stream, caller);
}

HcclResult HcclScatter(void* sendBuf, void* recvBuf, uint64_t recvCount,
                       HcclDataType dataType, uint32_t root, HcclComm comm,
                       aclrtStream stream) {
  CANNSIM_HCCL_CALL(HcclScatter);
  Check check("HcclScatter", comm);
  check.Type(dataType).Root(root);
  if (!check.ok()) return check.result();
  Collective call(Kind::kScatter, check.n_ranks());
  call.dtype = dataType;
  call.root = root;
  call.count = recvCount;
  if (check.rank() == root) {
    call.first.send =
        Cut(check.Buffers(sendBuf, recvCount, dataType, "read", "sendBuf"),
            check.n_ranks());
  }
  call.first.recv[root] =
      check.Buffer(recvBuf, recvCount, dataType, "written", "recvBuf");
  return Finish(check, std::move(call), stream, caller);
}

HcclResult HcclAlltoAll(const void* sendBuf, uint64_t sendCount,
                        HcclDataType sendType, const void* recvBuf,
                        uint64_t recvCount, HcclDataType recvType,
                        HcclComm comm, aclrtStream stream) {
  CANNSIM_HCCL_CALL(HcclAlltoAll);
  Check check("HcclAlltoAll", comm);
  check.Type(sendType).Same(sendType, recvType).NotTheSame(sendBuf, recvBuf);
  if (check.ok() && sendCount != recvCount) {
    check.Complain(HCCL_E_PARA, fmt::format("sendCount {}, recvCount {}",
                                            sendCount, recvCount));
  }
  const Piece send =
      check.Buffers(sendBuf, sendCount, sendType, "read", "sendBuf");
  const Piece recv =
      check.Buffers(recvBuf, recvCount, recvType, "written", "recvBuf");
  if (!check.ok()) return check.result();
  Collective call(Kind::kAlltoAll, check.n_ranks());
  call.dtype = sendType;
  call.count = sendCount;
  call.first = {.send = Cut(send, check.n_ranks()),
                .recv = Cut(recv, check.n_ranks())};
  return Finish(check, std::move(call), stream, caller);
}

HcclResult HcclAlltoAllV(const void* sendBuf, const void* sendCounts,
                         const void* sdispls, HcclDataType sendType,
                         const void* recvBuf, const void* recvCounts,
                         const void* rdispls, HcclDataType recvType,
                         HcclComm comm, aclrtStream stream) {
  CANNSIM_HCCL_CALL(HcclAlltoAllV);
  Check check("HcclAlltoAllV", comm);
  check.Type(sendType).Same(sendType, recvType).NotTheSame(sendBuf, recvBuf);
  check.NotNull(sendCounts, "sendCounts").NotNull(sdispls, "sdispls");
  check.NotNull(recvCounts, "recvCounts").NotNull(rdispls, "rdispls");
  if (!check.ok()) return check.result();
  Collective call(Kind::kAlltoAllV, check.n_ranks());
  FillAlltoAll(check,
               {.send = sendBuf,
                .send_counts = Numbers(sendCounts),
                .send_places = Numbers(sdispls),
                .recv = recvBuf,
                .recv_counts = Numbers(recvCounts),
                .recv_places = Numbers(rdispls)},
               sendType, &call);
  return Finish(check, std::move(call), stream, caller);
}

HcclResult HcclAlltoAllVC(const void* sendBuf, const void* sendCountMatrix,
                          HcclDataType sendType, const void* recvBuf,
                          HcclDataType recvType, HcclComm comm,
                          aclrtStream stream) {
  CANNSIM_HCCL_CALL(HcclAlltoAllVC);
  Check check("HcclAlltoAllVC", comm);
  check.Type(sendType).Same(sendType, recvType).NotTheSame(sendBuf, recvBuf);
  check.NotNull(sendCountMatrix, "sendCountMatrix");
  if (!check.ok()) return check.result();
  const uint32_t n = check.n_ranks();
  const uint64_t* matrix = Numbers(sendCountMatrix);
  std::vector<uint64_t> sends(n);
  std::vector<uint64_t> receives(n);
  for (uint32_t r = 0; r < n; ++r) {
    sends[r] = matrix[size_t{check.rank()} * n + r];
    receives[r] = matrix[size_t{r} * n + check.rank()];
  }
  const std::vector<uint64_t> send_places = PlacesOf(sends);
  const std::vector<uint64_t> recv_places = PlacesOf(receives);
  Collective call(Kind::kAlltoAllVC, n);
  FillAlltoAll(check,
               {.send = sendBuf,
                .send_counts = sends.data(),
                .send_places = send_places.data(),
                .recv = recvBuf,
                .recv_counts = receives.data(),
                .recv_places = recv_places.data()},
               sendType, &call);
  return Finish(check, std::move(call), stream, caller);
}

HcclResult HcclBarrier(HcclComm comm, aclrtStream stream) {
  CANNSIM_HCCL_CALL(HcclBarrier);
  Check check("HcclBarrier", comm);
  if (!check.ok()) return check.result();
  return Finish(check, Collective(Kind::kBarrier, check.n_ranks()), stream,
                caller);
}

}  // extern "C"
