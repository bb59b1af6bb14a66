// SPDX-License-Identifier: Apache-2.0
// The C interface: communicators begin and end.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "acl/acl.h"
#include "cannsim/hccl/calls/rank_table.h"
#include "cannsim/hccl/communicator.h"
#include "cannsim/hccl/rendezvous.h"
#include "cannsim/hccl/say.h"
#include "hccl/hccl.h"

namespace cannsim::hccl {
namespace {

using Place = Communicator::Place;

// The card is the whole of what a HcclRootInfo holds here.
RootCard CardOf(const HcclRootInfo& info) {
  RootCard card;
  std::memcpy(&card, info.internal, sizeof(card));
  return card;
}

HcclResult MyDevice(const char* api, int* device) {
  if (aclrtGetDevice(device) == ACL_SUCCESS) return HCCL_SUCCESS;
  return Refuse(HCCL_E_RUNTIME, kInner, api,
                "the thread has no device: aclrtSetDevice was not called");
}

// The cards of HcclGetRootInfo that are still held open in this process.
struct OpenDoors {
  std::mutex mutex;
  std::set<Id> ids;
};

OpenDoors& AllDoors() {
  static auto* const doors = new OpenDoors;
  return *doors;
}

void CloseDoor(const RootCard& card) {
  const std::lock_guard lock(AllDoors().mutex);
  if (card.life.pid == getpid() && AllDoors().ids.erase(card.id) > 0) {
    Segment::Close(card);
  }
}

// Only what every version of the struct has: clients may pass a shorter one.
std::string NameIn(const HcclCommConfig* config) {
  if (config == nullptr) return "";
  const char* name = config->hcclCommName;
  return {name, std::find(name, name + COMM_NAME_MAX_LENGTH - 1, '\0')};
}

HcclResult JoinAndWait(const RootCard& card, const Place& place,
                       HcclComm* comm) {
  HcclResult result = HCCL_SUCCESS;
  auto made = Communicator::Join(card, place, &result);
  if (made == nullptr) return result;
  result = made->AwaitOthers();
  if (result != HCCL_SUCCESS) return result;
  *comm = Register(std::move(made));
  return HCCL_SUCCESS;
}

HcclResult InitByRoot(const char* api, const HcclRootInfo* info, Place place,
                      HcclComm* comm) {
  if (info == nullptr || comm == nullptr) {
    return Refuse(HCCL_E_PTR, kBadArgument, api,
                  info == nullptr ? "rootInfo is null" : "comm is null");
  }
  place.where = api;
  if (const HcclResult result = MyDevice(api, &place.device); result != 0) {
    return result;
  }
  const RootCard card = CardOf(*info);
  const HcclResult result = JoinAndWait(card, place, comm);
  CloseDoor(card);  // everybody is in, or gave up
  return result;
}

HcclResult CreateCard(const char* api, RootCard* card) {
  if (const int error = Segment::Create(card); error != 0) {
    return Refuse(HCCL_E_MEMORY, kNoMemory, api, std::strerror(error));
  }
  return HCCL_SUCCESS;
}

HcclResult InitByTable(const char* api, const char* path, Place place,
                       HcclComm* comm) {
  if (path == nullptr || comm == nullptr) {
    return Refuse(HCCL_E_PTR, kBadArgument, api,
                  path == nullptr ? "clusterInfo is null" : "comm is null");
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    return Refuse(HCCL_E_OPEN_FILE_FAILURE, kBadRankTable, api,
                  fmt::format("{}: cannot be read", path));
  }
  constexpr size_t kLargest = size_t{16} << 20;
  std::string text(kLargest, '\0');
  in.read(text.data(), static_cast<std::streamsize>(kLargest));
  text.resize(static_cast<size_t>(in.gcount()));
  RankTable table;
  std::string why;
  if (!ParseRankTable(text, &table, &why)) {
    return Refuse(HCCL_E_PARA, kBadRankTable, api,
                  fmt::format("{}: {}", path, why));
  }
  place.where = api;
  place.n_ranks = table.n_ranks;
  if (const HcclResult result = MyDevice(api, &place.device); result != 0) {
    return result;
  }
  RootCard card;
  if (place.rank == 0) {
    if (const HcclResult result = CreateCard(api, &card); result != 0) {
      return result;
    }
    const Door door(table.key, card);
    const HcclResult result =
        door.error() == 0
            ? JoinAndWait(card, place, comm)
            : Refuse(HCCL_E_UNAVAIL, kNoConnection, api,
                     fmt::format("{}: another rank 0 has this table: {}", path,
                                 std::strerror(door.error())));
    Segment::Close(card);
    return result;
  }
  HcclSettings settings;
  cannsim_hccl_settings(&settings);
  const auto limit = std::chrono::steady_clock::now() +
                     std::chrono::milliseconds(static_cast<int64_t>(
                         1e3 * settings.connect_s * settings.real_seconds));
  if (!KnockUntil(table.key, limit, &card)) {
    return Refuse(HCCL_E_TIMEOUT, kNoConnection, api,
                  fmt::format("rank {} waited {} s (HCCL_CONNECT_TIMEOUT) for "
                              "remote rank: [0] of {}",
                              place.rank, settings.connect_s, path));
  }
  return JoinAndWait(card, place, comm);
}

// All ranks of one process.
HcclResult InitAll(uint32_t n, const int32_t* devices, HcclComm* comms,
                   const void* caller) {
  constexpr char kApi[] = "HcclCommInitAll";
  if (devices == nullptr || comms == nullptr) {
    return Refuse(HCCL_E_PTR, kBadArgument, kApi,
                  devices == nullptr ? "devices is null" : "comms is null");
  }
  uint32_t n_devices = 0;
  aclrtGetDeviceCount(&n_devices);
  for (uint32_t i = 0; i < n; ++i) {
    const bool is_there =
        devices[i] >= 0 && static_cast<uint32_t>(devices[i]) < n_devices;
    if (!is_there ||
        std::find(devices, devices + i, devices[i]) != devices + i) {
      return Refuse(
          HCCL_E_PARA, kBadArgument, kApi,
          fmt::format("device {} {}", devices[i],
                      is_there ? "is named twice" : "does not exist"));
    }
  }
  RootCard card;
  if (const HcclResult result = CreateCard(kApi, &card); result != 0) {
    return result;
  }
  std::vector<std::shared_ptr<Communicator>> made;
  HcclResult result = HCCL_SUCCESS;
  for (uint32_t i = 0; i < std::max(n, 1U); ++i) {
    made.push_back(Communicator::Join(card,
                                      {.n_ranks = n,
                                       .rank = i,
                                       .device = n == 0 ? 0 : devices[i],
                                       .name = "",
                                       .where = kApi,
                                       .caller = caller},
                                      &result));
    if (result != HCCL_SUCCESS) break;
  }
  Segment::Close(card);
  if (result != HCCL_SUCCESS) return result;
  for (uint32_t i = 0; i < n; ++i) comms[i] = Register(std::move(made[i]));
  return HCCL_SUCCESS;
}

// What tells one call of HcclCreateSubCommConfig from another.
uint64_t KeyOf(uint64_t id, const uint32_t* ranks, uint32_t n) {
  uint64_t hash = 0xCBF29CE484222325ULL ^ id;
  for (uint32_t i = 0; i < n; ++i) hash = (hash ^ ranks[i]) * 0x100000001B3ULL;
  return hash | 1;
}

// The first of its ranks begins; the card goes through the communicator that
// they have in common.
HcclResult InitSub(Communicator& parent, uint64_t key, uint32_t first,
                   const Place& place, HcclComm* comm) {
  Segment& segment = parent.segment();
  Slot& slot = segment.slot(first);
  RootCard card;
  if (place.rank == 0) {
    if (const HcclResult result = CreateCard(place.where, &card);
        result != HCCL_SUCCESS) {
      return result;
    }
    slot.sub_card = card;
    slot.sub_key = key;
    segment.WakeAll();
    const HcclResult result = JoinAndWait(card, place, comm);
    slot.sub_key = 0;
    Segment::Close(card);
    return result;
  }
  const HcclSettings& settings = parent.settings();
  const Outcome outcome =
      parent.Wait({.seconds = settings.connect_s * settings.real_seconds}, [&] {
        Look look;
        look.done = slot.sub_key.load() == key;
        look.missing = uint64_t{1} << first;
        if (look.done) card = slot.sub_card;
        return look;
      });
  if (!outcome.ok()) {
    return Refuse(HCCL_E_TIMEOUT, kNoConnection, place.where,
                  fmt::format("rank {} of {} waits for {}, which does not "
                              "begin the sub-communicator",
                              parent.rank(), parent.name(),
                              parent.Describe(outcome.missing)));
  }
  return JoinAndWait(card, place, comm);
}

HcclResult CreateSub(HcclComm* comm, const uint32_t* ids, uint64_t id,
                     Place place, HcclComm* sub) {
  const char* api = place.where;
  if (comm == nullptr || sub == nullptr) {
    return Refuse(HCCL_E_PTR, kBadArgument, api,
                  comm == nullptr ? "comm is null" : "subComm is null");
  }
  const auto parent = Find(*comm);
  if (parent == nullptr) {
    return Refuse(HCCL_E_PARA, kBadArgument, api,
                  "comm is no live communicator");
  }
  // A rank that is not part of it says so, and gets none.
  if (ids == nullptr) {
    *sub = nullptr;
    return place.rank == kNobody
               ? HCCL_SUCCESS
               : Refuse(HCCL_E_PTR, kBadArgument, api, "rankIds is null");
  }
  for (uint32_t i = 0; i < place.n_ranks; ++i) {
    if (ids[i] >= parent->n_ranks() ||
        std::find(ids, ids + i, ids[i]) != ids + i) {
      return Refuse(HCCL_E_PARA, kBadArgument, api,
                    fmt::format("rankIds[{}] is {}, twice or of none of {} "
                                "ranks",
                                i, ids[i], parent->n_ranks()));
    }
  }
  if (place.rank >= place.n_ranks || ids[place.rank] != parent->rank()) {
    return Refuse(HCCL_E_PARA, kBadArgument, api,
                  fmt::format("subCommRankId {} is not the place of rank {} in "
                              "rankIds",
                              place.rank, parent->rank()));
  }
  place.device = parent->device();
  return InitSub(*parent, KeyOf(id, ids, place.n_ranks), ids[0], place, sub);
}

}  // namespace
}  // namespace cannsim::hccl

using cannsim::hccl::kBadArgument;
using cannsim::hccl::kNobody;
using cannsim::hccl::NameIn;
using cannsim::hccl::Place;
using cannsim::hccl::Refuse;

extern "C" {

HcclResult HcclGetRootInfo(HcclRootInfo* rootInfo) {
  CANNSIM_HCCL_CALL(HcclGetRootInfo);
  if (rootInfo == nullptr) {
    return Refuse(HCCL_E_PTR, kBadArgument, "HcclGetRootInfo",
                  "rootInfo is null");
  }
  int device = 0;
  if (const HcclResult result =
          cannsim::hccl::MyDevice("HcclGetRootInfo", &device);
      result != HCCL_SUCCESS) {
    return result;
  }
  cannsim::hccl::RootCard card;
  if (const HcclResult result =
          cannsim::hccl::CreateCard("HcclGetRootInfo", &card);
      result != HCCL_SUCCESS) {
    return result;
  }
  {
    auto& doors = cannsim::hccl::AllDoors();
    const std::lock_guard lock(doors.mutex);
    doors.ids.insert(card.id);
  }
  std::memset(rootInfo, 0, sizeof(*rootInfo));
  std::memcpy(rootInfo->internal, &card, sizeof(card));
  return HCCL_SUCCESS;
}

HcclResult HcclCommInitRootInfo(uint32_t nRanks, const HcclRootInfo* rootInfo,
                                uint32_t rank, HcclComm* comm) {
  CANNSIM_HCCL_CALL(HcclCommInitRootInfo);
  Place place{.n_ranks = nRanks, .rank = rank, .name = "", .caller = caller};
  return cannsim::hccl::InitByRoot("HcclCommInitRootInfo", rootInfo,
                                   std::move(place), comm);
}

HcclResult HcclCommInitRootInfoConfig(uint32_t nRanks,
                                      const HcclRootInfo* rootInfo,
                                      uint32_t rank,
                                      const HcclCommConfig* config,
                                      HcclComm* comm) {
  CANNSIM_HCCL_CALL(HcclCommInitRootInfoConfig);
  if (config == nullptr) {
    return Refuse(HCCL_E_PTR, kBadArgument, "HcclCommInitRootInfoConfig",
                  "config is null");
  }
  Place place{.n_ranks = nRanks,
              .rank = rank,
              .name = NameIn(config),
              .caller = caller};
  return cannsim::hccl::InitByRoot("HcclCommInitRootInfoConfig", rootInfo,
                                   std::move(place), comm);
}

HcclResult HcclCommInitClusterInfo(const char* clusterInfo, uint32_t rank,
                                   HcclComm* comm) {
  CANNSIM_HCCL_CALL(HcclCommInitClusterInfo);
  Place place{.rank = rank, .name = "", .caller = caller};
  return cannsim::hccl::InitByTable("HcclCommInitClusterInfo", clusterInfo,
                                    std::move(place), comm);
}

HcclResult HcclCommInitClusterInfoConfig(const char* clusterInfo, uint32_t rank,
                                         HcclCommConfig* config,
                                         HcclComm* comm) {
  CANNSIM_HCCL_CALL(HcclCommInitClusterInfoConfig);
  if (config == nullptr) {
    return Refuse(HCCL_E_PTR, kBadArgument, "HcclCommInitClusterInfoConfig",
                  "config is null");
  }
  Place place{.rank = rank, .name = NameIn(config), .caller = caller};
  return cannsim::hccl::InitByTable("HcclCommInitClusterInfoConfig",
                                    clusterInfo, std::move(place), comm);
}

HcclResult HcclCommInitAll(uint32_t ndev, int32_t* devices, HcclComm* comms) {
  CANNSIM_HCCL_CALL(HcclCommInitAll);
  return cannsim::hccl::InitAll(ndev, devices, comms, caller);
}

HcclResult HcclCreateSubCommConfig(HcclComm* comm, uint32_t rankNum,
                                   uint32_t* rankIds, uint64_t subCommId,
                                   uint32_t subCommRankId,
                                   HcclCommConfig* config, HcclComm* subComm) {
  CANNSIM_HCCL_CALL(HcclCreateSubCommConfig);
  Place place{.n_ranks = rankNum,
              .rank = subCommRankId,
              .name = NameIn(config),
              .where = "HcclCreateSubCommConfig",
              .caller = caller};
  return cannsim::hccl::CreateSub(comm, rankIds, subCommId, std::move(place),
                                  subComm);
}

HcclResult HcclCommDestroy(HcclComm comm) {
  CANNSIM_HCCL_CALL(HcclCommDestroy);
  if (comm == nullptr) {
    return Refuse(HCCL_E_PTR, kBadArgument, "HcclCommDestroy", "comm is null");
  }
  if (cannsim::hccl::Unregister(comm) != nullptr) return HCCL_SUCCESS;
  if (cannsim_strict()) {
    cannsim_finding("SIM-013", caller,
                    "this communicator was destroyed before, or is none; by");
  }
  return Refuse(HCCL_E_PARA, kBadArgument, "HcclCommDestroy",
                "comm is no live communicator");
}

}  // extern "C"
