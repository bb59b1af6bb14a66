// SPDX-License-Identifier: Apache-2.0
#include "cannsim/hccl/message.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "acl/acl.h"
#include "cannsim/hccl/collective.h"
#include "cannsim/hccl/reduce.h"
#include "cannsim/hccl/say.h"

namespace cannsim::hccl {
namespace {

// In front of the bytes of a message.
struct Head {
  uint64_t number;  // of the messages from this rank to that one
  uint64_t count;
  uint64_t dtype;
  double now_ns;
};

// One message on its way.
struct Flow {
  Message what;
  Head head{};
  bool has_begun = false;
  bool is_done = false;
  uint64_t n_head = 0;         // bytes of the head that went
  uint64_t n_moved = 0;        // bytes behind it
  uint64_t n_bytes = 0;        // behind it, in all
  uint64_t end = 0;            // place in the ring behind it (sender)
  std::string complaint = {};  // that the sides do not fit
};

class Exchange {
 public:
  Exchange(Communicator& communicator, const std::vector<Message>& messages,
           const char* name, const TaskRun& run)
      : communicator_(communicator),
        segment_(communicator.segment()),
        me_(communicator.rank()),
        name_(name),
        run_(run) {
    for (const Message& message : messages) {
      flows_.push_back(
          {.what = message, .n_bytes = message.count * BytesOf(message.dtype)});
    }
  }

  int All(const void* caller) {
    const Outcome outcome = communicator_.Wait(communicator_.ExecPatience(run_),
                                               [this] { return LookAtAll(); });
    if (!outcome.ok()) return FailOutcome(communicator_, outcome, name_, 0);
    for (const Flow& flow : flows_) {
      if (flow.complaint.empty()) continue;
      communicator_.NoteError(HCCL_E_PARA);
      const std::string text = fmt::format(
          "{} in {}: {}", name_, communicator_.name(), flow.complaint);
      if (cannsim_strict()) {
        cannsim_finding("SIM-019", caller, (text + "; called from").c_str());
      }
      return FailTask(ACL_ERROR_RT_FFTS_PLUS_EXCEPTION, HCCL_E_PARA, kMismatch,
                      name_, text);
    }
    return ACL_SUCCESS;
  }

 private:
  Look LookAtAll() {
    Look look;
    std::set<std::pair<uint32_t, bool>> busy;  // the first one goes
    for (Flow& flow : flows_) {
      if (flow.is_done) continue;
      if (busy.emplace(flow.what.peer, flow.what.is_send).second) {
        const bool moved = flow.what.is_send ? Send(flow) : Receive(flow);
        if (moved) segment_.WakeUp(flow.what.peer);
        look.moved |= moved;
      }
      if (flow.is_done) {
        busy.erase({flow.what.peer, flow.what.is_send});
        continue;
      }
      look.done = false;
      look.missing |= uint64_t{1} << flow.what.peer;
    }
    return look;
  }

  bool Send(Flow& flow) {
    const uint32_t to = flow.what.peer;
    Ring& ring = segment_.ring(Way::kMessage, me_, to);
    if (!flow.has_begun) {
      flow.has_begun = true;
      flow.head = {.number = ring.n_messages++,
                   .count = flow.what.count,
                   .dtype = static_cast<uint64_t>(flow.what.dtype),
                   .now_ns = *run_.now_ns};
      flow.end = ring.written.load() + sizeof(Head) + flow.n_bytes;
    }
    size_t moved = 0;
    if (flow.n_head < sizeof(Head)) {
      moved =
          segment_.Push(Way::kMessage, me_, to,
                        reinterpret_cast<const char*>(&flow.head) + flow.n_head,
                        sizeof(Head) - flow.n_head);
      flow.n_head += moved;
    }
    if (flow.n_head == sizeof(Head)) {
      const size_t n =
          segment_.Push(Way::kMessage, me_, to, flow.what.at + flow.n_moved,
                        flow.n_bytes - flow.n_moved);
      flow.n_moved += n;
      moved += n;
    }
    if (ring.taken.load() >= flow.end) {
      flow.is_done = true;
      if (ring.refused.load() == flow.head.number + 1) {
        flow.complaint = fmt::format(
            "rank {} expects something else from rank {} than {} of {}", to,
            me_, flow.what.count, NameOf(flow.what.dtype));
      }
    }
    return moved > 0;
  }

  bool Receive(Flow& flow) {
    const uint32_t from = flow.what.peer;
    size_t moved = 0;
    if (!flow.has_begun) {
      // The head is looked at before it is taken: a sender that sees it gone
      // finds the complaint.
      if (segment_.Pull(Way::kMessage, from, me_,
                        reinterpret_cast<char*>(&flow.head), sizeof(Head),
                        false) < sizeof(Head)) {
        return false;
      }
      Judge(flow, from);
      flow.has_begun = true;
      moved =
          segment_.Pull(Way::kMessage, from, me_, nullptr, sizeof(Head), true);
    }
    char* at = flow.complaint.empty() ? flow.what.at + flow.n_moved : nullptr;
    const size_t n = segment_.Pull(Way::kMessage, from, me_, at,
                                   flow.n_bytes - flow.n_moved, true);
    flow.n_moved += n;
    flow.is_done = flow.n_moved == flow.n_bytes;
    return moved + n > 0;
  }

  void Judge(Flow& flow, uint32_t from) {
    *run_.now_ns = std::max(*run_.now_ns, flow.head.now_ns);
    const auto dtype = static_cast<HcclDataType>(flow.head.dtype);
    if (flow.head.count == flow.what.count && dtype == flow.what.dtype) return;
    flow.complaint =
        fmt::format("rank {} sends {} of {} to rank {}, which expects {} of {}",
                    from, flow.head.count, NameOf(dtype), me_, flow.what.count,
                    NameOf(flow.what.dtype));
    flow.n_bytes = flow.head.count * BytesOf(dtype);  // to be thrown away
    segment_.ring(Way::kMessage, from, me_).refused = flow.head.number + 1;
  }

  Communicator& communicator_;
  Segment& segment_;
  const uint32_t me_;
  const char* name_;
  const TaskRun& run_;
  std::vector<Flow> flows_;
};

int RunMessages(Communicator& communicator, const char* name,
                const std::vector<Message>& messages, Turn& turn,
                const TaskRun& run, const void* caller) {
  int code = ACL_SUCCESS;
  if (!BeginTask(communicator, turn, run, name, &code)) return code;
  return Exchange(communicator, messages, name, run).All(caller);
}

}  // namespace

HcclResult QueueMessages(const std::shared_ptr<Communicator>& communicator,
                         const char* name, std::vector<Message> messages,
                         aclrtStream stream, const void* caller) {
  uint64_t to = 0;
  uint64_t from = 0;
  uint64_t bytes = 0;
  for (const Message& message : messages) {
    (message.is_send ? to : from) |= uint64_t{1} << message.peer;
    bytes += message.count * BytesOf(message.dtype);
  }
  const auto turn = cannsim_is_recorded(stream)
                        ? nullptr
                        : communicator->DrawMessages(to, from, true);
  return Launch(
      communicator, stream, name, bytes,
      [communicator, name, messages = std::move(messages), turn, to, from,
       caller](const TaskRun& run) {
        const auto mine = turn == nullptr
                              ? communicator->DrawMessages(to, from, false)
                              : turn;
        return RunMessages(*communicator, name, messages, *mine, run, caller);
      });
}

}  // namespace cannsim::hccl
