// SPDX-License-Identifier: Apache-2.0
#include "toolkit/logs/input/reader.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <memory>
#include <mutex>
#include <utility>

#include "base/error_ids.h"
#include "base/scoped_fd.h"
#include "base/thread_pool.h"

namespace belay::logs {
namespace {

constexpr size_t kReadBytes = size_t{256} << 10;
constexpr size_t kMaxFilesWithAnchors =
    4096;  // clocks of more are not compared

// A piece of a file, from the first line that begins in it to the end of the
// last; or a whole archive.
struct Task {
  size_t input = 0;
  uint64_t begin = 0, end = 0;
  std::vector<FileFacts> facts;  // of an archive: many
  Status status;
};

class InputReader {
 public:
  InputReader(std::span<const InputFile> inputs, const Knowledge& knowledge,
              const ReadOptions& options)
      : inputs_(inputs), knowledge_(knowledge), options_(options) {}

  StatusOr<ReadResult> Run() {
    for (size_t i = 0; i < inputs_.size(); ++i) Plan(i);
    BELAY_ASSIGN_OR_RETURN(const std::unique_ptr<ThreadPool> pool,
                           ThreadPool::Create(std::max(options_.n_threads, 1)));
    pool->ParallelFor(tasks_.size(),
                      [&](size_t task, int /*thread*/) { Do(tasks_[task]); });
    return Collect();
  }

 private:
  void Plan(size_t i) {
    const InputFile& input = inputs_[i];
    planned_ += input.n_bytes;
    const uint64_t chunk = input.is_archive
                               ? UINT64_MAX
                               : std::max<uint64_t>(options_.chunk_bytes, 1);
    uint64_t begin = 0;
    do {
      Task task;
      task.input = i;
      task.begin = begin;
      task.end = input.n_bytes - begin > chunk ? begin + chunk : input.n_bytes;
      begin = task.end;
      tasks_.push_back(std::move(task));
    } while (begin < input.n_bytes);
  }

  bool Stopped() const { return options_.stop != nullptr && *options_.stop; }

  void Do(Task& task) {
    if (Stopped()) return;
    task.status =
        inputs_[task.input].is_archive ? DoArchive(task) : DoPiece(task);
    ++files_done_;
  }

  void Report(uint64_t n_bytes) {
    bytes_ += n_bytes;
    if (!options_.progress) return;
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) return;
    options_.progress({bytes_, planned_, files_done_});
  }

  Status DoArchive(Task& task) {
    const std::string& path = inputs_[task.input].path;
    std::unique_ptr<Scanner> scanner;
    std::string current;
    const auto finish = [&] {
      if (scanner == nullptr) return;
      scanner->End();
      if (scanner->facts().n_lines > 0) {
        task.facts.push_back(scanner->TakeFacts());
        // What bounds the memory of an archive with very many files.
        if (task.facts.size() > kMaxFilesWithAnchors) {
          std::vector<Anchor>().swap(task.facts.back().anchors);
        }
      }
      scanner.reset();
    };
    const Status status =
        ReadArchive(path, options_.limits,
                    [&](const std::string& name, std::string_view piece) {
                      if (scanner == nullptr || name != current) {
                        finish();
                        current = name;
                        scanner = std::make_unique<Scanner>(knowledge_, name);
                      }
                      if (piece.empty()) {
                        finish();
                      } else if (!Stopped()) {
                        scanner->Feed(piece);
                        Report(piece.size());
                      }
                    });
    finish();
    return status;
  }

  Status DoPiece(Task& task) {
    const std::string& path = inputs_[task.input].path;
    const ScopedFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (fd.get() < 0) return Unreadable(path);
    Scanner scanner(knowledge_, path);
    std::vector<char> buffer(kReadBytes);
    // A line belongs to the piece in which it begins: the byte before a piece
    // tells whether one begins at its start.
    uint64_t at = task.begin == 0 ? 0 : task.begin - 1;
    bool is_inside = task.begin == 0;  // at the start of a line of ours
    bool is_done = false;
    while (!is_done && !Stopped()) {
      const ssize_t n =
          pread(fd.get(), buffer.data(), buffer.size(), static_cast<off_t>(at));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return Unreadable(path);
      if (n == 0) break;
      std::string_view bytes(buffer.data(), static_cast<size_t>(n));
      const uint64_t here = at;
      at += bytes.size();
      if (!is_inside) {
        const size_t newline = bytes.find('\n');
        if (newline == std::string_view::npos) {
          if (at >= task.end) break;
          continue;
        }
        if (here + newline + 1 >= task.end) break;
        bytes.remove_prefix(newline + 1);
        is_inside = true;
      }
      const uint64_t start = at - bytes.size();
      if (at >= task.end && task.end < inputs_[task.input].n_bytes) {
        // Up to the end of the line that holds the piece's last byte.
        const uint64_t last = task.end > start ? task.end - 1 - start : 0;
        const size_t newline = bytes.find('\n', last);
        if (newline != std::string_view::npos) {
          bytes = bytes.substr(0, newline + 1);
          is_done = true;
        }
      }
      scanner.Feed(bytes);
      Report(bytes.size());
    }
    scanner.End();
    task.facts.push_back(scanner.TakeFacts());
    return absl::OkStatus();
  }

  static Status Unreadable(const std::string& path) {
    return MakeError(kSysUnreadable, {.where = path,
                                      .what = std::strerror(errno),
                                      .expected = "",
                                      .got = ""});
  }

  ReadResult Collect() {
    ReadResult result;
    for (size_t t = 0; t < tasks_.size();) {
      const size_t input = tasks_[t].input;
      std::vector<FileFacts> pieces;
      for (; t < tasks_.size() && tasks_[t].input == input; ++t) {
        if (!tasks_[t].status.ok()) {
          result.warnings.push_back(tasks_[t].status);
        }
        std::move(tasks_[t].facts.begin(), tasks_[t].facts.end(),
                  std::back_inserter(pieces));
      }
      if (inputs_[input].is_archive) {
        std::move(pieces.begin(), pieces.end(),
                  std::back_inserter(result.files));
      } else if (!pieces.empty()) {
        FileFacts facts = JoinFacts(std::move(pieces));
        if (facts.n_lines > 0) result.files.push_back(std::move(facts));
      }
    }
    std::stable_sort(
        result.files.begin(), result.files.end(),
        [](const FileFacts& a, const FileFacts& b) { return a.name < b.name; });
    return result;
  }

  std::span<const InputFile> inputs_;
  const Knowledge& knowledge_;
  const ReadOptions& options_;
  std::vector<Task> tasks_;
  std::mutex mutex_;  // of the progress call
  std::atomic<uint64_t> bytes_{0};
  std::atomic<size_t> files_done_{0};
  uint64_t planned_ = 0;
};

}  // namespace

StatusOr<ReadResult> ReadInputs(std::span<const InputFile> inputs,
                                const Knowledge& knowledge,
                                const ReadOptions& options) {
  return InputReader(inputs, knowledge, options).Run();
}

FileFacts JoinFacts(std::vector<FileFacts> pieces) {
  FileFacts all = std::move(pieces[0]);
  for (size_t p = 1; p < pieces.size(); ++p) {
    FileFacts& piece = pieces[p];
    const size_t first_block = all.blocks.size();
    for (Block& block : piece.blocks) {
      block.first_line += all.n_lines;
      block.last_line += all.n_lines;
      all.blocks.push_back(std::move(block));
    }
    for (Event& event : piece.events) {
      event.line += all.n_lines;
      event.block += first_block;
      all.events.push_back(std::move(event));
    }
    for (Suspicious& one : piece.suspicious) {
      one.line += all.n_lines;
      all.suspicious.push_back(std::move(one));
    }
    for (const auto& [entry, n] : piece.counts) all.counts[entry] += n;
    all.rank_and_device.insert(piece.rank_and_device.begin(),
                               piece.rank_and_device.end());
    all.versions.insert(piece.versions.begin(), piece.versions.end());
    all.has_ascend |= piece.has_ascend;
    if (!all.first_time) all.first_time = piece.first_time;
    if (piece.last_time) all.last_time = piece.last_time;
    all.n_bytes += piece.n_bytes;
    all.n_cut_lines += piece.n_cut_lines;
    all.n_lines += piece.n_lines;
  }
  return all;
}

}  // namespace belay::logs
