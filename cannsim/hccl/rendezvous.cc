// SPDX-License-Identifier: Apache-2.0
#include "cannsim/hccl/rendezvous.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

namespace cannsim::hccl {
namespace {

// A name that begins with a zero byte lives in no file system.
socklen_t AddressOf(const std::string& key, sockaddr_un* address) {
  *address = sockaddr_un{};
  address->sun_family = AF_UNIX;
  const std::string name =
      "cannsim-hccl-" + std::to_string(getuid()) + "-" + key;
  const size_t n = std::min(name.size(), sizeof(address->sun_path) - 1);
  std::memcpy(address->sun_path + 1, name.data(), n);
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + n);
}

bool IsOurs(int socket) {
  ucred peer{};
  socklen_t bytes = sizeof(peer);
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 &&
         peer.uid == getuid();
}

bool ReadCard(int socket, RootCard* card) {
  const timeval limit{.tv_sec = 1, .tv_usec = 0};
  setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  return IsOurs(socket) && recv(socket, card, sizeof(*card), MSG_WAITALL) ==
                               static_cast<ssize_t>(sizeof(*card));
}

}  // namespace

Door::Door(const std::string& key, const RootCard& card) : card_(card) {
  sockaddr_un address{};
  const socklen_t bytes = AddressOf(key, &address);
  socket_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket_ < 0 ||
      bind(socket_, reinterpret_cast<const sockaddr*>(&address), bytes) != 0 ||
      listen(socket_, static_cast<int>(kMaxRanks)) != 0) {
    error_ = errno;
    return;
  }
  thread_ = std::thread([this] { Answer(); });
}

Door::~Door() {
  closing_ = true;
  if (thread_.joinable()) thread_.join();
  if (socket_ >= 0) close(socket_);
}

void Door::Answer() {
  while (!closing_) {
    pollfd wait{.fd = socket_, .events = POLLIN, .revents = 0};
    if (poll(&wait, 1, 20) <= 0) continue;
    const int guest = accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
    if (guest < 0) continue;
    if (IsOurs(guest)) send(guest, &card_, sizeof(card_), MSG_NOSIGNAL);
    close(guest);
  }
}

bool KnockUntil(const std::string& key,
                std::chrono::steady_clock::time_point limit, RootCard* card) {
  sockaddr_un address{};
  const socklen_t bytes = AddressOf(key, &address);
  while (true) {
    const int mine = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool has_card =
        mine >= 0 &&
        connect(mine, reinterpret_cast<const sockaddr*>(&address), bytes) ==
            0 &&
        ReadCard(mine, card);
    if (mine >= 0) close(mine);
    if (has_card) return true;
    if (std::chrono::steady_clock::now() >= limit) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

}  // namespace cannsim::hccl
