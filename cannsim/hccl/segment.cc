// SPDX-License-Identifier: Apache-2.0
#include "cannsim/hccl/segment.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>
#include <sstream>

namespace cannsim::hccl {
namespace {

constexpr char kMagic[8] = {'c', 's', 'i', 'm', 'h', 'c', 'l', '1'};
constexpr long kListenNs = 20'000'000;  // then look whether the others live

struct Header {
  char magic[8];
  Id id;
  std::atomic<uint32_t> n_ranks;
  Slot slots[kMaxRanks];
};

constexpr size_t kPage = 4096;
constexpr size_t kHeaderBytes = (sizeof(Header) + kPage - 1) / kPage * kPage;

// Few ranks get large rings; many get as much memory together.
size_t RingBytesFor(uint32_t n_ranks) {
  return n_ranks <= 8 ? size_t{256} << 10 : size_t{32} << 10;
}

// Fields 3 (state) and 22 (start) of /proc/PID/stat; the name in field 2 may
// hold anything, so count from its end.
bool ReadStat(int pid, char* state, uint64_t* start_time) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
  std::string text{std::istreambuf_iterator<char>(in), {}};
  const size_t end = text.rfind(')');
  if (end == std::string::npos) return false;
  std::istringstream rest(text.substr(end + 1));
  std::string word;
  if (!(rest >> *state)) return false;
  for (int field = 4; field < 22; ++field) rest >> word;
  return static_cast<bool>(rest >> *start_time);
}

Header* HeaderOf(void* header) { return static_cast<Header*>(header); }

}  // namespace

Life MyLife() {
  Life life{.pid = getpid()};
  char state = 0;
  ReadStat(life.pid, &state, &life.start_time);
  return life;
}

bool IsAlive(const Life& life) {
  char state = 0;
  uint64_t start_time = 0;
  return ReadStat(life.pid, &state, &start_time) && state != 'Z' &&
         state != 'X' && start_time == life.start_time;
}

int Segment::Create(RootCard* card) {
  *card = RootCard{};
  std::memcpy(card->magic, kMagic, sizeof(kMagic));
  card->life = MyLife();
  if (getrandom(card->id.data(), card->id.size(), 0) !=
      static_cast<ssize_t>(card->id.size())) {
    return EIO;
  }
  card->fd = memfd_create("cannsim-hccl", MFD_CLOEXEC);
  if (card->fd < 0) return errno;
  void* at = MAP_FAILED;
  if (ftruncate(card->fd, kHeaderBytes) == 0) {
    at = mmap(nullptr, kHeaderBytes, PROT_READ | PROT_WRITE, MAP_SHARED,
              card->fd, 0);
  }
  if (at == MAP_FAILED) {
    const int error = errno;
    close(card->fd);
    return error;
  }
  std::memcpy(HeaderOf(at)->magic, kMagic, sizeof(kMagic));
  HeaderOf(at)->id = card->id;
  munmap(at, kHeaderBytes);
  return 0;
}

void Segment::Close(const RootCard& card) {
  if (card.life.pid == getpid()) close(card.fd);
}

std::shared_ptr<Segment> Segment::Open(const RootCard& card, int* error) {
  *error = EINVAL;
  if (std::memcmp(card.magic, kMagic, sizeof(kMagic)) != 0) return nullptr;
  const std::string path = "/proc/" + std::to_string(card.life.pid) + "/fd/" +
                           std::to_string(card.fd);
  std::shared_ptr<Segment> made(new Segment);
  made->fd_ = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (made->fd_ < 0) {
    *error = errno;
    return nullptr;
  }
  // The number may belong to another file by now.
  struct stat info {};
  if (fstat(made->fd_, &info) != 0 || !S_ISREG(info.st_mode) ||
      info.st_size < static_cast<off_t>(kHeaderBytes)) {
    *error = ENOENT;
    return nullptr;
  }
  void* at = mmap(nullptr, kHeaderBytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                  made->fd_, 0);
  if (at == MAP_FAILED) {
    *error = errno;
    return nullptr;
  }
  made->header_ = at;
  if (std::memcmp(HeaderOf(at)->magic, kMagic, sizeof(kMagic)) != 0 ||
      HeaderOf(at)->id != card.id) {
    *error = ENOENT;
    return nullptr;
  }
  *error = 0;
  return made;
}

Segment::~Segment() {
  if (rings_ != nullptr) munmap(rings_, rings_bytes_);
  if (header_ != nullptr) munmap(header_, kHeaderBytes);
  if (fd_ >= 0) close(fd_);
}

uint32_t Segment::SetRanks(uint32_t n_ranks) {
  uint32_t known = 0;
  if (HeaderOf(header_)->n_ranks.compare_exchange_strong(known, n_ranks)) {
    known = n_ranks;
  }
  if (known == n_ranks) n_ranks_ = n_ranks;
  return known;
}

bool Segment::Join(uint32_t rank) {
  Slot& mine = slot(rank);
  SlotState expected = SlotState::kFree;
  if (!mine.state.compare_exchange_strong(expected, SlotState::kTaking)) {
    return false;
  }
  mine.life = MyLife();
  mine.state = SlotState::kJoined;
  WakeAll();
  return true;
}

bool Segment::MapRings() {
  ring_bytes_ = RingBytesFor(n_ranks_);
  rings_bytes_ = size_t{2} * n_ranks_ * n_ranks_ * (sizeof(Ring) + ring_bytes_);
  const auto total = static_cast<off_t>(kHeaderBytes + rings_bytes_);
  // Everybody grows it to the same size; new bytes are zeros, as rings begin.
  if (ftruncate(fd_, total) != 0) return false;
  void* at = mmap(nullptr, rings_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED,
                  fd_, static_cast<off_t>(kHeaderBytes));
  if (at == MAP_FAILED) return false;
  rings_ = static_cast<char*>(at);
  close(fd_);
  fd_ = -1;
  return true;
}

Slot& Segment::slot(uint32_t rank) { return HeaderOf(header_)->slots[rank]; }

size_t Segment::RingOffset(Way way, uint32_t from, uint32_t to) const {
  const size_t n = n_ranks_;
  const size_t index =
      (way == Way::kMessage ? n * n : 0) + size_t{from} * n + to;
  return index * (sizeof(Ring) + ring_bytes_);
}

Ring& Segment::ring(Way way, uint32_t from, uint32_t to) {
  return *reinterpret_cast<Ring*>(rings_ + RingOffset(way, from, to));
}

char* Segment::RingBytes(Way way, uint32_t from, uint32_t to) {
  return rings_ + RingOffset(way, from, to) + sizeof(Ring);
}

size_t Segment::Push(Way way, uint32_t from, uint32_t to, const char* data,
                     size_t bytes) {
  Ring& one = ring(way, from, to);
  const uint64_t at = one.written.load(std::memory_order_relaxed);
  const uint64_t used = at - one.taken.load(std::memory_order_acquire);
  const size_t n = std::min<size_t>(bytes, ring_bytes_ - used);
  if (n == 0) return 0;
  char* base = RingBytes(way, from, to);
  const size_t begin = at % ring_bytes_;
  const size_t first = std::min(n, ring_bytes_ - begin);
  std::memcpy(base + begin, data, first);
  std::memcpy(base, data + first, n - first);
  one.written.store(at + n, std::memory_order_release);
  return n;
}

size_t Segment::Pull(Way way, uint32_t from, uint32_t to, char* data,
                     size_t bytes, bool take) {
  Ring& one = ring(way, from, to);
  const uint64_t at = one.taken.load(std::memory_order_relaxed);
  const uint64_t there = one.written.load(std::memory_order_acquire) - at;
  const size_t n = std::min<size_t>(bytes, there);
  if (n == 0) return 0;
  if (data != nullptr) {
    const char* base = RingBytes(way, from, to);
    const size_t begin = at % ring_bytes_;
    const size_t first = std::min(n, ring_bytes_ - begin);
    std::memcpy(data, base + begin, first);
    std::memcpy(data + first, base, n - first);
  }
  if (take) one.taken.store(at + n, std::memory_order_release);
  return n;
}

void Segment::WakeUp(uint32_t rank) {
  std::atomic<uint32_t>& bell = slot(rank).bell;
  bell.fetch_add(1);
  syscall(SYS_futex, &bell, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void Segment::WakeAll() {
  for (uint32_t rank = 0; rank < n_ranks_; ++rank) WakeUp(rank);
}

void Segment::Listen(uint32_t rank, uint32_t seen) {
  const timespec limit{.tv_sec = 0, .tv_nsec = kListenNs};
  syscall(SYS_futex, &slot(rank).bell, FUTEX_WAIT, seen, &limit, nullptr, 0);
}

}  // namespace cannsim::hccl
