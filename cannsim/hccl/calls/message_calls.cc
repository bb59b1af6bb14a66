// SPDX-License-Identifier: Apache-2.0
// Messages of the C interface, alone and in groups.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "cannsim/hccl/calls/check.h"
#include "cannsim/hccl/message.h"
#include "cannsim/hccl/say.h"
#include "hccl/hccl.h"

namespace cannsim::hccl {
namespace {

// What a thread has put into its group for one communicator and stream.
struct Batch {
  std::shared_ptr<Communicator> communicator;
  aclrtStream stream = nullptr;
  std::vector<Message> messages;
  const void* caller = nullptr;
};

struct Group {
  int depth = 0;
  std::vector<Batch> batches;
};

Group& MyGroup() {
  thread_local Group group;
  return group;
}

HcclResult QueueOrKeep(const Check& check, const char* name,
                       const Message& message, aclrtStream stream,
                       const void* caller) {
  if (!check.ok()) return check.result();
  Group& group = MyGroup();
  if (group.depth == 0) {
    return QueueMessages(check.communicator(), name, {message}, stream, caller);
  }
  const auto it = std::find_if(
      group.batches.begin(), group.batches.end(), [&](const Batch& batch) {
        return batch.communicator == check.communicator() &&
               batch.stream == stream;
      });
  if (it != group.batches.end()) {
    it->messages.push_back(message);
  } else {
    group.batches.push_back({check.communicator(), stream, {message}, caller});
  }
  return HCCL_SUCCESS;
}

Message MessageOf(Check& check, const HcclSendRecvItem& item) {
  const bool is_send = item.sendRecvType == HCCL_SEND;
  const Piece piece = check.Buffer(item.buf, item.count, item.dataType,
                                   is_send ? "read" : "written",
                                   is_send ? "sendBuf" : "recvBuf");
  return {.is_send = is_send,
          .peer = item.remoteRank,
          .at = piece.at,
          .count = item.count,
          .dtype = item.dataType};
}

}  // namespace
}  // namespace cannsim::hccl

using cannsim::hccl::Check;
using cannsim::hccl::Message;

extern "C" {

HcclResult HcclSend(void* sendBuf, uint64_t count, HcclDataType dataType,
                    uint32_t destRank, HcclComm comm, aclrtStream stream) {
  CANNSIM_HCCL_CALL(HcclSend);
  Check check("HcclSend", comm);
  check.Type(dataType).Peer(destRank, /*may_be_own=*/false);
  const Message message = cannsim::hccl::MessageOf(
      check, {HCCL_SEND, sendBuf, count, dataType, destRank});
  return cannsim::hccl::QueueOrKeep(check, "HcclSend", message, stream, caller);
}

HcclResult HcclRecv(void* recvBuf, uint64_t count, HcclDataType dataType,
                    uint32_t srcRank, HcclComm comm, aclrtStream stream) {
  CANNSIM_HCCL_CALL(HcclRecv);
  Check check("HcclRecv", comm);
  check.Type(dataType).Peer(srcRank, /*may_be_own=*/false);
  const Message message = cannsim::hccl::MessageOf(
      check, {HCCL_RECV, recvBuf, count, dataType, srcRank});
  return cannsim::hccl::QueueOrKeep(check, "HcclRecv", message, stream, caller);
}

HcclResult HcclBatchSendRecv(HcclSendRecvItem* sendRecvInfo, uint32_t itemNum,
                             HcclComm comm, aclrtStream stream) {
  CANNSIM_HCCL_CALL(HcclBatchSendRecv);
  Check check("HcclBatchSendRecv", comm);
  check.NotNull(sendRecvInfo, "sendRecvInfo");
  if (check.ok() && itemNum == 0) {
    check.Complain(HCCL_E_PARA, "itemNum is 0");
  }
  std::vector<Message> messages;
  for (uint32_t i = 0; check.ok() && i < itemNum; ++i) {
    const HcclSendRecvItem& item = sendRecvInfo[i];
    // A C program may put any number there.
    uint32_t kind = 0;
    static_assert(sizeof(kind) == sizeof(item.sendRecvType));
    std::memcpy(&kind, &item.sendRecvType, sizeof(kind));
    if (kind != HCCL_SEND && kind != HCCL_RECV) {
      return check.Complain(
          HCCL_E_PARA, fmt::format("item {} neither sends nor receives", i));
    }
    check.Type(item.dataType).Peer(item.remoteRank, /*may_be_own=*/true);
    messages.push_back(cannsim::hccl::MessageOf(check, item));
  }
  if (!check.ok()) return check.result();
  return cannsim::hccl::QueueMessages(check.communicator(), "HcclBatchSendRecv",
                                      std::move(messages), stream, caller);
}

HcclResult HcclGroupStart() {
  ++cannsim::hccl::MyGroup().depth;
  return HCCL_SUCCESS;
}

HcclResult HcclGroupEnd() {
  CANNSIM_HCCL_CALL(HcclGroupEnd);
  cannsim::hccl::Group& group = cannsim::hccl::MyGroup();
  if (group.depth == 0) {
    return cannsim::hccl::Refuse(HCCL_E_PARA, cannsim::hccl::kBadArgument,
                                 "HcclGroupEnd", "no group was begun");
  }
  if (--group.depth > 0) return HCCL_SUCCESS;
  HcclResult first = HCCL_SUCCESS;
  const auto batches = std::exchange(group.batches, {});
  for (const auto& batch : batches) {
    const HcclResult result = cannsim::hccl::QueueMessages(
        batch.communicator, "HcclBatchSendRecv", batch.messages, batch.stream,
        batch.caller);
    if (first == HCCL_SUCCESS) first = result;
  }
  return first;
}

}  // extern "C"
