// SPDX-License-Identifier: Apache-2.0
#include "capi/pump.h"

#include <algorithm>
#include <utility>

namespace belay::capi {

Status Pump::Run(engine::Request request, const std::atomic<bool>& cancelled,
                 const OnEvent& on_event) {
  Ticket ticket;
  ticket.request = std::move(request);
  ticket.cancelled = &cancelled;
  std::unique_lock lock(mutex_);
  tickets_.push_back(&ticket);
  while (true) {
    changed_.wait(lock, [&] {
      return !ticket.events.empty() || ticket.is_over || !is_stepping_;
    });
    if (!ticket.events.empty()) {
      const auto events = std::exchange(ticket.events, {});
      lock.unlock();
      bool is_wanted = true;
      for (const engine::Event& event : events) {
        is_wanted = on_event(event) && is_wanted;
      }
      lock.lock();
      if (!is_wanted) ticket.is_unwanted = true;
    } else if (ticket.is_over) {
      break;
    } else {
      Step(lock);
    }
  }
  std::erase(tickets_, &ticket);
  return ticket.failed;
}

// Who steps owns the engine and what tickets hold of it; the lock is for the
// lists alone, so that callers can come and be told meanwhile.
void Pump::Step(std::unique_lock<std::mutex>& lock) {
  is_stepping_ = true;
  std::vector<Ticket*> live;
  std::vector<engine::RequestId> unwanted;
  for (Ticket* ticket : tickets_) {
    if (ticket->is_over) continue;
    live.push_back(ticket);
    if (ticket->id != 0 && (ticket->is_unwanted || *ticket->cancelled)) {
      unwanted.push_back(ticket->id);
    }
  }
  lock.unlock();
  Submit(live);
  for (const engine::RequestId id : unwanted) engine_->Cancel(id);
  const auto events = engine_->Step();
  lock.lock();
  if (!events.ok()) EndAll(live, events.status());
  for (Ticket* ticket : live) {
    if (!events.ok()) break;
    if (!ticket->failed.ok()) ticket->is_over = true;
    for (const engine::Event& event : *events) {
      if (event.request != ticket->id) continue;
      ticket->events.push_back(event);
      ticket->events.back().top = {};  // the engine's, until its next step
      if (event.finish != engine::FinishReason::kNone) ticket->is_over = true;
    }
  }
  is_stepping_ = false;
  changed_.notify_all();
}

// Without the lock: a ticket that is not submitted yet is looked at by nobody
// else but its owner, who waits.
void Pump::Submit(const std::vector<Ticket*>& tickets) {
  for (Ticket* ticket : tickets) {
    if (ticket->id != 0) continue;
    auto id = engine_->Submit(std::move(ticket->request));
    if (id.ok()) {
      ticket->id = *id;
    } else {
      ticket->failed = id.status();
    }
  }
}

// A device fault: what ran is taken out of the engine, so that the next
// requests find it empty.
void Pump::EndAll(const std::vector<Ticket*>& tickets, const Status& error) {
  for (Ticket* ticket : tickets) {
    if (ticket->failed.ok()) ticket->failed = error;
    ticket->is_over = true;
    if (ticket->id != 0) engine_->Cancel(ticket->id);
  }
  // Only sweeps out: nobody is left to compute for.
  engine_->Step().IgnoreError();
}

}  // namespace belay::capi
