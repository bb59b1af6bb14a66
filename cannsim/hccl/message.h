// SPDX-License-Identifier: Apache-2.0
// Messages between two ranks. A send is done when the other side has taken
// it, so that an order of sends that would hang on a card hangs here.
#ifndef BELAY_CANNSIM_HCCL_MESSAGE_H_
#define BELAY_CANNSIM_HCCL_MESSAGE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "cannsim/hccl/communicator.h"

namespace cannsim::hccl {

struct Message {
  bool is_send = false;
  uint32_t peer = 0;
  char* at = nullptr;
  uint64_t count = 0;
  HcclDataType dtype = HCCL_DATA_TYPE_RESERVED;
};

// Queues messages that go at the same time (those with one rank and direction:
// one behind another). `name` is a literal.
HcclResult QueueMessages(const std::shared_ptr<Communicator>& communicator,
                         const char* name, std::vector<Message> messages,
                         aclrtStream stream, const void* caller);

}  // namespace cannsim::hccl

#endif  // BELAY_CANNSIM_HCCL_MESSAGE_H_
