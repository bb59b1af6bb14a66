// SPDX-License-Identifier: Apache-2.0
#include "server/core/metrics.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>

#include "base/file.h"

namespace belay::server {
namespace {

void Family(const char* name, const char* type, const char* help,
            std::string* out) {
  fmt::format_to(std::back_inserter(*out), "# HELP {} {}\n# TYPE {} {}\n", name,
                 help, name, type);
}

template <typename T>
void Single(const char* name, const char* type, const char* help, T value,
            std::string* out) {
  Family(name, type, help, out);
  fmt::format_to(std::back_inserter(*out), "{} {}\n", name, value);
}

// Resident bytes of this process; 0 when the system does not say.
uint64_t ResidentBytes() {
  const auto text = ReadFile("/proc/self/statm", 4096);
  if (!text.ok()) return 0;
  unsigned long long n_all = 0;
  unsigned long long n_resident = 0;
  if (std::sscanf(text->c_str(), "%llu %llu", &n_all, &n_resident) != 2) {
    return 0;
  }
  return n_resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

void WriteEngine(const engine::EngineStats& s, std::string* out) {
  Single("belay_requests_waiting", "gauge", "Requests in the engine's queue",
         s.n_waiting, out);
  Single("belay_requests_running", "gauge", "Requests in the batch",
         s.n_running, out);
  Single(
      "belay_batch_limit", "gauge",
      "Sequences that may run at once; lower than usual when memory is short",
      s.batch_limit, out);
  Single("belay_engine_steps_total", "counter", "Steps of the engine",
         s.n_steps, out);
  Single("belay_prefill_tokens_total", "counter", "Prompt tokens computed",
         s.n_prefill_tokens, out);
  Single("belay_generated_tokens_total", "counter",
         "Tokens generated, counted as they are made", s.n_generated_tokens,
         out);
  Single("belay_preemptions_total", "counter",
         "Running requests that had to wait again", s.n_preemptions, out);
  Family("belay_cache_pages", "gauge", "Cache pages of 128 tokens by state",
         out);
  const int64_t n_used = s.n_pages - s.n_free_pages - s.n_cached_pages;
  fmt::format_to(std::back_inserter(*out),
                 "belay_cache_pages{{state=\"used\"}} {}\n"
                 "belay_cache_pages{{state=\"cached\"}} {}\n"
                 "belay_cache_pages{{state=\"free\"}} {}\n",
                 n_used, s.n_cached_pages, s.n_free_pages);
  Single("belay_prefix_hits_total", "counter",
         "Requests that began with cached tokens", s.n_prefix_hits, out);
  Single("belay_prefix_misses_total", "counter",
         "Requests that found nothing in the prefix cache", s.n_prefix_misses,
         out);
  Single("belay_prefix_tokens_total", "counter",
         "Prompt tokens that came from the prefix cache", s.n_prefix_tokens,
         out);
  Family("belay_drafts_total", "counter",
         "Draft tokens checked, by place in the draft", out);
  for (size_t i = 0; i < s.drafts_by_position.size(); ++i) {
    fmt::format_to(std::back_inserter(*out),
                   "belay_drafts_total{{position=\"{}\"}} {}\n", i + 1,
                   s.drafts_by_position[i]);
  }
  Family("belay_drafts_accepted_total", "counter",
         "Draft tokens that were right, by place in the draft", out);
  for (size_t i = 0; i < s.accepted_by_position.size(); ++i) {
    fmt::format_to(std::back_inserter(*out),
                   "belay_drafts_accepted_total{{position=\"{}\"}} {}\n", i + 1,
                   s.accepted_by_position[i]);
  }
  Family("belay_memory_guard", "gauge",
         "What the memory guard does; 1 for the state it is in", out);
  for (const auto state :
       {engine::GuardState::kNormal, engine::GuardState::kNoPrefixes,
        engine::GuardState::kSmallBatch}) {
    fmt::format_to(std::back_inserter(*out),
                   "belay_memory_guard{{state=\"{}\"}} {}\n",
                   engine::GuardStateName(state), s.guard == state ? 1 : 0);
  }
}

}  // namespace

void Histogram::Observe(double seconds) {
  const auto* const bound =
      std::lower_bound(kBounds.begin(), kBounds.end(), seconds);
  ++counts_[static_cast<size_t>(bound - kBounds.begin())];
  sum_ += seconds;
}

void Histogram::Write(const char* name, const char* help,
                      std::string* out) const {
  Family(name, "histogram", help, out);
  uint64_t n = 0;
  for (size_t i = 0; i < kBounds.size(); ++i) {
    n += counts_[i];
    fmt::format_to(std::back_inserter(*out), "{}_bucket{{le=\"{}\"}} {}\n",
                   name, kBounds[i], n);
  }
  n += counts_.back();
  fmt::format_to(std::back_inserter(*out),
                 "{0}_bucket{{le=\"+Inf\"}} {1}\n{0}_sum {2}\n{0}_count {1}\n",
                 name, n, sum_);
}

void Metrics::CountRequest(const std::string& path, int status) {
  const std::lock_guard lock(mutex_);
  ++requests_[{path, status}];
}

void Metrics::CountError(const std::string& id) {
  const std::lock_guard lock(mutex_);
  ++errors_[id.empty() ? "unknown" : id];
}

void Metrics::CountGone() {
  const std::lock_guard lock(mutex_);
  ++n_gone_;
}

void Metrics::AddAnswer(const AnswerTimes& times, const std::string& finish) {
  const std::lock_guard lock(mutex_);
  ++finishes_[finish];
  n_prompt_tokens_ += static_cast<uint64_t>(times.n_prompt_tokens);
  n_cached_tokens_ += static_cast<uint64_t>(times.n_cached_tokens);
  n_completion_tokens_ += static_cast<uint64_t>(times.n_completion_tokens);
  if (times.ttft_s >= 0) ttft_.Observe(times.ttft_s);
  if (times.tpot_s >= 0) tpot_.Observe(times.tpot_s);
  e2e_.Observe(times.e2e_s);
}

void Metrics::ObserveOverhead(double seconds) {
  const std::lock_guard lock(mutex_);
  overhead_.Observe(seconds);
}

std::string Metrics::Text(const Gauges& gauges) const {
  std::string out;
  Single("belay_ready", "gauge", "1 once the model is loaded and tested",
         gauges.ready ? 1 : 0, &out);
  Single("belay_load_progress", "gauge", "Part of the model that is loaded",
         gauges.loaded, &out);
  Single("belay_connections", "gauge", "Open connections", gauges.n_connections,
         &out);
  Single("belay_requests_live", "gauge",
         "Requests submitted and not ended, waiting ones included",
         gauges.n_live, &out);
  Single("belay_engine_stalled_seconds", "gauge",
         "Seconds since the last step while there is work", gauges.stalled_s,
         &out);
  WriteEngine(gauges.engine, &out);
  Family("belay_memory_bytes", "gauge", "Planned memory by kind", &out);
  for (const auto& [kind, bytes] : gauges.memory_bytes) {
    fmt::format_to(std::back_inserter(out),
                   "belay_memory_bytes{{kind=\"{}\"}} {}\n", kind, bytes);
  }
  Single("process_resident_memory_bytes", "gauge", "Resident memory",
         ResidentBytes(), &out);

  const std::lock_guard lock(mutex_);
  Family("belay_http_requests_total", "counter",
         "Requests by path and HTTP status", &out);
  for (const auto& [key, n] : requests_) {
    fmt::format_to(
        std::back_inserter(out),
        "belay_http_requests_total{{path=\"{}\",status=\"{}\"}} {}\n",
        key.first, key.second, n);
  }
  Family("belay_errors_total", "counter", "Errors by catalogue id", &out);
  for (const auto& [id, n] : errors_) {
    fmt::format_to(std::back_inserter(out),
                   "belay_errors_total{{id=\"{}\"}} {}\n", id, n);
  }
  Family("belay_answers_total", "counter", "Answers by reason of their end",
         &out);
  for (const auto& [finish, n] : finishes_) {
    fmt::format_to(std::back_inserter(out),
                   "belay_answers_total{{finish=\"{}\"}} {}\n", finish, n);
  }
  Single("belay_clients_gone_total", "counter",
         "Clients that left before their answer ended", n_gone_, &out);
  Single("belay_prompt_tokens_total", "counter",
         "Tokens of the prompts of answered requests", n_prompt_tokens_, &out);
  Single("belay_cached_tokens_total", "counter",
         "Those of them that came from the prefix cache", n_cached_tokens_,
         &out);
  Single("belay_completion_tokens_total", "counter",
         "Tokens of the answers that have ended", n_completion_tokens_, &out);
  ttft_.Write("belay_ttft_seconds", "Time to the first token", &out);
  tpot_.Write("belay_tpot_seconds",
              "Time of a token after the first, averaged over an answer", &out);
  e2e_.Write("belay_e2e_seconds", "Time to the end of an answer", &out);
  overhead_.Write("belay_server_overhead_seconds",
                  "Time that the server adds to a first token", &out);
  return out;
}

}  // namespace belay::server
