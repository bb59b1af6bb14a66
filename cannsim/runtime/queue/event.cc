// SPDX-License-Identifier: Apache-2.0
#include "cannsim/runtime/queue/event.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace cannsim {
namespace {

using Clock = std::chrono::steady_clock;
// How soon a waiter notices that its stream was destroyed by force.
constexpr auto kLook = std::chrono::milliseconds(20);

}  // namespace

void Record::Complete(double ns) {
  const std::lock_guard lock(mutex_);
  done_ = true;
  time_ns_ = ns;
  changed_.notify_all();
}

bool Record::done() const {
  const std::lock_guard lock(mutex_);
  return done_;
}

double Record::time_ns() const {
  const std::lock_guard lock(mutex_);
  return time_ns_;
}

void Record::SetOrder(std::shared_ptr<const Order> order) {
  const std::lock_guard lock(mutex_);
  order_ = std::move(order);
}

std::shared_ptr<const Order> Record::order() const {
  const std::lock_guard lock(mutex_);
  return order_;
}

bool Record::Wait(int64_t timeout_ms,
                  const std::atomic<bool>* abandoned) const {
  std::unique_lock lock(mutex_);
  const auto end = Clock::now() + std::chrono::milliseconds(timeout_ms);
  while (!done_) {
    if (abandoned != nullptr && abandoned->load()) return false;
    if (timeout_ms >= 0 && Clock::now() >= end) return false;
    if (abandoned == nullptr && timeout_ms < 0) {
      changed_.wait(lock);
    } else {
      const auto look = Clock::now() + kLook;
      changed_.wait_until(lock, timeout_ms >= 0 ? std::min(look, end) : look);
    }
  }
  return true;
}

std::shared_ptr<Record> Event::latest() const {
  const std::lock_guard lock(mutex_);
  return latest_;
}

void Event::SetLatest(std::shared_ptr<Record> record) {
  const std::lock_guard lock(mutex_);
  latest_ = std::move(record);
}

void Event::ResetIf(const std::shared_ptr<Record>& record) {
  const std::lock_guard lock(mutex_);
  if (latest_ == record) latest_ = nullptr;
}

}  // namespace cannsim
