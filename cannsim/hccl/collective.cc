// SPDX-License-Identifier: Apache-2.0
#include "cannsim/hccl/collective.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "acl/acl.h"
#include "cannsim/hccl/reduce.h"
#include "cannsim/hccl/say.h"

namespace cannsim::hccl {
namespace {

constexpr const char* kNames[] = {
    "HcclAllReduce",     "HcclAllGather",      "HcclAllGatherV",
    "HcclReduceScatter", "HcclReduceScatterV", "HcclBroadcast",
    "HcclReduce",        "HcclScatter",        "HcclAlltoAll",
    "HcclAlltoAllV",     "HcclAlltoAllVC",     "HcclBarrier"};

// One run of a collective in a stream's thread.
class Running {
 public:
  Running(Communicator& communicator, const Collective& collective,
          const TaskRun& run, uint64_t number, const void* caller)
      : communicator_(communicator),
        segment_(communicator.segment()),
        collective_(collective),
        run_(run),
        number_(number),
        caller_(caller) {}

  int All() {
    Publish();
    Outcome outcome = Meet();
    if (!outcome.ok()) return Fail(outcome);
    if (const uint64_t skipped = Skipped(); skipped != 0) {
      return FailSkipped(skipped);
    }
    if (const std::string why = Mismatch(); !why.empty()) {
      return FailMismatch(why);
    }
    std::vector<char> parts;
    Move first = collective_.first;
    if (collective_.n_reduced > 0) {
      const uint64_t bytes = collective_.n_reduced * BytesOf(collective_.dtype);
      parts.resize(first.recv.size() * bytes);
      for (size_t r = 0; r < first.recv.size(); ++r) {
        first.recv[r].at = parts.data() + r * bytes;
      }
    }
    outcome = Transfer(first);
    if (!outcome.ok()) return Fail(outcome);
    if (collective_.n_reduced > 0) {
      Reduce(collective_.dtype, collective_.op, parts.data(),
             communicator_.n_ranks(), collective_.n_reduced,
             collective_.reduced);
    }
    if (!collective_.second.send.empty()) {
      outcome = Transfer(collective_.second);
    }
    return outcome.ok() ? ACL_SUCCESS : Fail(outcome);
  }

 private:
  const char* name() const { return NameOf(collective_.kind); }
  Description& Call(uint32_t rank) {
    return segment_.slot(rank).calls[number_ % 4];
  }

  void Publish() {
    Description& mine = Call(communicator_.rank());
    mine = Description{.number = number_,
                       .kind = static_cast<uint32_t>(collective_.kind),
                       .dtype = static_cast<uint32_t>(collective_.dtype),
                       .op = static_cast<uint32_t>(collective_.op),
                       .root = collective_.root,
                       .count = collective_.count,
                       .now_ns = *run_.now_ns,
                       .send = {},
                       .recv = {}};
    const Move& move = collective_.first;
    for (size_t r = 0; r < move.send.size(); ++r) {
      mine.send[r] = move.send[r].bytes;
      mine.recv[r] = move.recv[r].bytes;
    }
    segment_.slot(communicator_.rank()).n_met = number_ + 1;
    segment_.WakeAll();
  }

  // Until all ranks have come to this collective. The clocks meet too.
  Outcome Meet() {
    const Outcome outcome =
        communicator_.Wait(communicator_.ExecPatience(run_), [this] {
          Look look;
          for (uint32_t r = 0; r < communicator_.n_ranks(); ++r) {
            if (segment_.slot(r).n_met.load() > number_) continue;
            look.done = false;
            look.missing |= uint64_t{1} << r;
          }
          return look;
        });
    if (!outcome.ok()) return outcome;
    for (uint32_t r = 0; r < communicator_.n_ranks(); ++r) {
      if (Call(r).number == number_) {
        *run_.now_ns = std::max(*run_.now_ns, Call(r).now_ns);
      }
    }
    return outcome;
  }

  // Ranks whose task of this number never ran.
  uint64_t Skipped() {
    uint64_t ranks = 0;
    for (uint32_t r = 0; r < communicator_.n_ranks(); ++r) {
      if (Call(r).number != number_) ranks |= uint64_t{1} << r;
    }
    return ranks;
  }

  std::string CallText(uint32_t rank) {
    const Description& call = Call(rank);
    const auto kind = static_cast<Kind>(call.kind);
    std::string text = fmt::format(
        "rank {} calls {} (count {}, {}", rank, NameOf(kind), call.count,
        hccl::NameOf(static_cast<HcclDataType>(call.dtype)));
    if (call.op != static_cast<uint32_t>(HCCL_REDUCE_RESERVED)) {
      text +=
          fmt::format(", {}", hccl::NameOf(static_cast<HcclReduceOp>(call.op)));
    }
    if (call.root != kNobody) text += fmt::format(", root {}", call.root);
    return text + ")";
  }

  // What differs between the calls, or "". All ranks find the same.
  std::string Mismatch() {
    const Description& zero = Call(0);
    for (uint32_t r = 1; r < communicator_.n_ranks(); ++r) {
      const Description& call = Call(r);
      if (call.kind != zero.kind || call.dtype != zero.dtype ||
          call.op != zero.op || call.root != zero.root ||
          call.count != zero.count) {
        return fmt::format("{}, {}", CallText(0), CallText(r));
      }
    }
    for (uint32_t i = 0; i < communicator_.n_ranks(); ++i) {
      for (uint32_t j = 0; j < communicator_.n_ranks(); ++j) {
        if (Call(i).send[j] == Call(j).recv[i]) continue;
        return fmt::format(
            "{}: rank {} sends {} bytes to rank {}, which "
            "expects {}",
            name(), i, Call(i).send[j], j, Call(j).recv[i]);
      }
    }
    return "";
  }

  int FailMismatch(const std::string& why) {
    communicator_.NoteError(HCCL_E_PARA);
    const std::string text = fmt::format("collective {} of {}: {}", number_ + 1,
                                         communicator_.name(), why);
    if (cannsim_strict()) {
      cannsim_finding("SIM-019", caller_, (text + "; called from").c_str());
    }
    return FailTask(ACL_ERROR_RT_FFTS_PLUS_EXCEPTION, HCCL_E_PARA, kMismatch,
                    name(), text);
  }

  int FailSkipped(uint64_t skipped) {
    communicator_.NoteError(HCCL_E_REMOTE);
    const auto first = static_cast<uint32_t>(std::countr_zero(skipped));
    communicator_.Break(first);
    return FailTask(
        ACL_ERROR_RT_FFTS_PLUS_EXCEPTION, HCCL_E_REMOTE, kMismatch, name(),
        fmt::format("collective {} of {}: rank {} never ran its own of this "
                    "number and is at a later one",
                    number_ + 1, communicator_.name(), first));
  }

  int Fail(const Outcome& outcome) {
    return FailOutcome(communicator_, outcome, name(), number_);
  }

  Outcome Transfer(const Move& move) {
    const uint32_t me = communicator_.rank();
    const uint32_t n = communicator_.n_ranks();
    if (move.send.empty()) return {};
    if (move.send[me].bytes > 0) {
      std::memmove(move.recv[me].at, move.send[me].at, move.send[me].bytes);
    }
    std::vector<uint64_t> sent(n);
    std::vector<uint64_t> received(n);
    return communicator_.Wait(communicator_.ExecPatience(run_), [&] {
      Look look;
      for (uint32_t r = 0; r < n; ++r) {
        if (r == me) continue;
        const uint64_t to_send = move.send[r].bytes - sent[r];
        const uint64_t to_receive = move.recv[r].bytes - received[r];
        const size_t out = segment_.Push(Way::kCollective, me, r,
                                         move.send[r].at + sent[r], to_send);
        const size_t in =
            segment_.Pull(Way::kCollective, r, me,
                          move.recv[r].at + received[r], to_receive, true);
        sent[r] += out;
        received[r] += in;
        if (out + in > 0) {
          look.moved = true;
          segment_.WakeUp(r);
        }
        if (out < to_send || in < to_receive) {
          look.done = false;
          look.missing |= uint64_t{1} << r;
        }
      }
      return look;
    });
  }

  Communicator& communicator_;
  Segment& segment_;
  const Collective& collective_;
  const TaskRun& run_;
  const uint64_t number_;
  const void* caller_;
};

int RunOnce(Communicator& communicator, const Collective& collective,
            Turn& turn, const TaskRun& run, const void* caller) {
  int code = ACL_SUCCESS;
  if (!BeginTask(communicator, turn, run, NameOf(collective.kind), &code)) {
    return code;
  }
  return Running(communicator, collective, run, turn.place(), caller).All();
}

}  // namespace

const char* NameOf(Kind kind) {
  const auto index = static_cast<size_t>(kind);
  return index < std::size(kNames) ? kNames[index] : "?";
}

Collective::Collective(Kind which, uint32_t n_ranks) : kind(which) {
  first.send.resize(n_ranks);
  first.recv.resize(n_ranks);
}

uint64_t Collective::BytesMoved(uint32_t rank) const {
  uint64_t bytes = 0;
  for (const Move* move : {&first, &second}) {
    uint64_t out = 0;
    uint64_t in = 0;
    for (size_t r = 0; r < move->send.size(); ++r) {
      if (r == rank) continue;
      out += move->send[r].bytes;
      in += move->recv[r].bytes;
    }
    bytes += std::max(out, in);
  }
  return bytes;
}

TaskCost CostOfLink(uint64_t bytes) {
  const double per_s = cannsim_profile()->peer_link_bytes_per_s;
  const auto amount = static_cast<double>(bytes);
  if (per_s <= 0) return {.bytes = amount};  // has none: the memory's
  return {.extra_ns = 1e9 * amount / per_s};
}

int FailOutcome(Communicator& communicator, const Outcome& outcome,
                const char* what, uint64_t number) {
  const auto blamed =
      outcome.missing == 0
          ? kNobody
          : static_cast<uint32_t>(std::countr_zero(outcome.missing));
  const std::string who = communicator.Describe(outcome.missing);
  communicator.Break(blamed);
  if (outcome.kind == Outcome::Kind::kAbandoned) return ACL_SUCCESS;
  const bool is_late = outcome.kind == Outcome::Kind::kTimeout;
  const HcclResult result = is_late ? HCCL_E_TIMEOUT : HCCL_E_REMOTE;
  communicator.NoteError(result);
  const std::string why =
      is_late ? fmt::format("no signal within {} s (HCCL_EXEC_TIMEOUT) from",
                            communicator.settings().exec_s)
              : "no signal will come any more from";
  return FailTask(
      ACL_ERROR_RT_FFTS_PLUS_TIMEOUT, result, kTimeout, what,
      fmt::format("{}, number {}, waits for a notify: {} {}. group "
                  "information: group:[{}], rankSize[{}], rankId[{}]",
                  what, number + 1, why, who, communicator.name(),
                  communicator.n_ranks(), communicator.rank()));
}

bool BeginTask(Communicator& communicator, Turn& turn, const TaskRun& run,
               const char* what, int* code) {
  const HcclSettings& settings = communicator.settings();
  // What is in front may itself wait as long as it is allowed to.
  const Entry entry =
      turn.Await({.abandoned = run.abandoned,
                  .seconds = 2 * settings.exec_s * settings.real_seconds});
  *code = ACL_SUCCESS;
  if (entry != Entry::kIn) communicator.Break(kNobody);
  if (entry == Entry::kAbandoned) return false;
  if (entry == Entry::kLate) {
    communicator.NoteError(HCCL_E_TIMEOUT);
    *code = FailTask(
        ACL_ERROR_RT_FFTS_PLUS_TIMEOUT, HCCL_E_TIMEOUT, kTimeout, what,
        fmt::format("{} in {} stands behind work of the same rank on another "
                    "stream, which was not done within twice {} s "
                    "(HCCL_EXEC_TIMEOUT)",
                    what, communicator.name(), settings.exec_s));
    return false;
  }
  if (!communicator.is_broken()) return true;
  *code =
      FailTask(ACL_ERROR_RT_FFTS_PLUS_EXCEPTION, HCCL_E_REMOTE, kInner, what,
               fmt::format("{} does not work any more: an earlier "
                           "collective failed",
                           communicator.name()));
  return false;
}

HcclResult Launch(const std::shared_ptr<Communicator>& communicator,
                  aclrtStream stream, const char* name, uint64_t bytes,
                  std::function<int(const TaskRun&)> run) {
  int32_t device = -1;
  if (aclrtGetDevice(&device) != ACL_SUCCESS) {
    return Refuse(HCCL_E_RUNTIME, kInner, name,
                  "the thread has no device: aclrtSetDevice was not called");
  }
  if (device != communicator->device()) {
    return Refuse(HCCL_E_PARA, kBadArgument, name,
                  fmt::format("the thread is on device {}, the communicator "
                              "on {}",
                              device, communicator->device()));
  }
  const int code =
      cannsim_launch_task(stream, name, CostOfLink(bytes), std::move(run));
  return code == 0 ? HCCL_SUCCESS : HCCL_E_RUNTIME;
}

HcclResult Queue(const std::shared_ptr<Communicator>& communicator,
                 Collective collective, aclrtStream stream,
                 const void* caller) {
  const auto shared = std::make_shared<Collective>(std::move(collective));
  const auto turn = cannsim_is_recorded(stream)
                        ? nullptr
                        : communicator->DrawCollective(/*has_ticket=*/true);
  return Launch(communicator, stream, NameOf(shared->kind),
                shared->BytesMoved(communicator->rank()),
                [communicator, shared, turn, caller](const TaskRun& run) {
                  const auto mine =
                      turn == nullptr
                          ? communicator->DrawCollective(/*has_ticket=*/false)
                          : turn;
                  return RunOnce(*communicator, *shared, *mine, run, caller);
                });
}

}  // namespace cannsim::hccl
