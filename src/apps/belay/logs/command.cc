// SPDX-License-Identifier: Apache-2.0
// `belay logs`: the command line of toolkit/logs.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "apps/belay/logs/logs.h"
#include "apps/belay/shell/interrupt.h"
#include "apps/belay/shell/progress.h"
#include "base/error_ids.h"
#include "base/file.h"
#include "base/thread_pool.h"
#include "toolkit/logs/input/follow.h"
#include "toolkit/logs/input/reader.h"
#include "toolkit/logs/judge/diagnosis.h"
#include "toolkit/logs/report/report.h"

namespace belay::apps {
namespace {

using nlohmann::ordered_json;

struct LogsArgs {
  std::vector<std::string> paths;
  bool follow = false;
  int threads = 0;
  std::string catalogue;
  std::string out;
};

Status Usage(const char* what) {
  return MakeError(
      kArgUsage,
      {.where = "belay logs", .what = what, .expected = "", .got = ""});
}

// Standard input in pieces, never more than one in memory.
void ReadAll(std::istream& in, logs::Scanner& scanner) {
  std::vector<char> buffer(size_t{256} << 10);
  while (in.read(buffer.data(), static_cast<std::streamsize>(buffer.size())) ||
         in.gcount() > 0) {
    scanner.Feed({buffer.data(), static_cast<size_t>(in.gcount())});
  }
  scanner.End();
}

// The same line by line, `each` after every line, so that news come at once.
template <typename Each>
void ReadLines(std::istream& in, logs::Scanner& scanner, Each each) {
  std::array<char, 65536> buffer;
  while (in.getline(buffer.data(), buffer.size()) || in.gcount() > 0) {
    const auto n = static_cast<size_t>(in.gcount());
    if (in.fail() && !in.eof()) {  // a line longer than the buffer
      in.clear();
      scanner.Feed({buffer.data(), n});
      continue;
    }
    // gcount() counts the newline, which getline() has taken away.
    if (in.eof()) {
      scanner.Feed({buffer.data(), n});
    } else {
      buffer[n - 1] = '\n';
      scanner.Feed({buffer.data(), n});
    }
    each();
  }
  scanner.End();
}

class LogsCommand {
 public:
  LogsCommand(const LogsArgs& args, const Context& context,
              const diag::Catalogue& catalogue)
      : args_(args),
        context_(context),
        catalogue_(catalogue),
        knowledge_(catalogue) {}

  StatusOr<ExitCode> Run() {
    const bool has_stream = std::find(args_.paths.begin(), args_.paths.end(),
                                      "-") != args_.paths.end();
    if (args_.follow && has_stream && args_.paths.size() > 1) {
      return Usage(context_.T("--follow takes \"-\" alone, or paths",
                              "--follow 只能单独使用 “-”，或使用路径"));
    }
    if (args_.follow && !has_stream) return Follow();
    return Read(has_stream);
  }

 private:
  StatusOr<ExitCode> Read(bool has_stream) {
    std::vector<std::string> paths = args_.paths;
    std::erase(paths, "-");
    BELAY_ASSIGN_OR_RETURN(const std::vector<logs::InputFile> inputs,
                           logs::ListInputs(paths));
    const std::atomic<bool>& interrupted = CatchInterrupts();
    Progress progress(context_);
    logs::ReadOptions options;
    options.n_threads = args_.threads > 0 ? args_.threads : DefaultThreads();
    options.stop = &interrupted;
    options.progress = [&](const logs::ReadProgress& p) {
      progress.Update(fmt::format(
          "{:.0f} MB {} {:.0f} MB, {}/{} {}",
          static_cast<double>(p.n_bytes) / 1e6, context_.T("of", "/"),
          static_cast<double>(p.n_planned) / 1e6, p.n_files, inputs.size(),
          context_.T("files", "个文件")));
    };
    BELAY_ASSIGN_OR_RETURN(logs::ReadResult result,
                           logs::ReadInputs(inputs, knowledge_, options));
    if (has_stream && context_.in != nullptr) {
      logs::Scanner scanner(knowledge_, "-");
      if (args_.follow) {
        std::vector<logs::FileFacts> now(1);
        ReadLines(*context_.in, scanner, [&] {
          if (scanner.facts().counts.size() == now[0].counts.size()) return;
          now[0] = scanner.facts();
          Tell(logs::Diagnose(now, catalogue_));
        });
      } else {
        ReadAll(*context_.in, scanner);
      }
      result.files.push_back(scanner.TakeFacts());
    }
    progress.Clear();
    for (const Status& warning : result.warnings) {
      PrintStatus(context_, warning);
    }
    if (interrupted) {
      return MakeError(
          kSysInterrupted,
          {.where = "belay logs", .what = "", .expected = "", .got = ""});
    }
    return Finish(logs::Diagnose(result.files, catalogue_));
  }

  // Prints the findings that were not printed yet.
  void Tell(const logs::Diagnosis& diagnosis) {
    for (const logs::Finding& finding : diagnosis.findings) {
      if (std::find(told_.begin(), told_.end(), finding.entry) != told_.end()) {
        continue;
      }
      told_.push_back(finding.entry);
      if (!context_.json) {
        context_.out << logs::FindingToText(finding, context_.out_style)
                     << std::flush;
      }
    }
  }

  StatusOr<ExitCode> Follow() {
    const std::atomic<bool>& interrupted = CatchInterrupts();
    logs::Follower follower(knowledge_, args_.paths);
    BELAY_RETURN_IF_ERROR(follower.Poll());
    while (!interrupted) {
      for (const logs::Finding& finding : follower.News()) {
        if (context_.json) continue;
        context_.out << logs::FindingToText(finding, context_.out_style)
                     << std::flush;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      // Files may come and go while a program restarts.
      const Status status = follower.Poll();
      if (!status.ok()) PrintStatus(context_, status);
    }
    return Finish(follower.Now());
  }

  StatusOr<ExitCode> Finish(const logs::Diagnosis& diagnosis) {
    if (context_.json) {
      PrintJson(context_, logs::DiagnosisToJson(diagnosis, context_.lang));
    } else {
      context_.out << logs::DiagnosisToText(diagnosis, context_.out_style);
    }
    if (!args_.out.empty()) {
      BELAY_RETURN_IF_ERROR(WriteFileAtomically(
          args_.out, logs::DiagnosisToHtml(diagnosis, context_.lang)));
    }
    return diagnosis.has_first ? ExitCode::kFindings : ExitCode::kOk;
  }

  const LogsArgs& args_;
  const Context& context_;
  const diag::Catalogue& catalogue_;
  const logs::Knowledge knowledge_;
  std::vector<const diag::Entry*> told_;
};

StatusOr<ExitCode> Logs(const LogsArgs& args, const Context& context) {
  // The context's own catalogue holds the errors only.
  BELAY_ASSIGN_OR_RETURN(diag::Catalogue catalogue,
                         diag::Catalogue::LoadEmbedded());
  if (!args.catalogue.empty()) {
    BELAY_RETURN_IF_ERROR(catalogue.AddFolder(args.catalogue));
  }
  return LogsCommand(args, context, catalogue).Run();
}

}  // namespace

void AddLogs(CLI::App& app, Context& context) {
  auto args = std::make_shared<LogsArgs>();
  CLI::App* command = AddCommand(
      app, context,
      {.name = "logs",
       .about = context.T("Finds the first cause in logs, over files and ranks",
                          "在日志中跨文件、跨 rank 找出首个原因"),
       .example = "belay logs ~/ascend/log server.log\n"
                  "belay logs collected.tar.gz --out report.html\n"
                  "dmesg | belay logs -\n"
                  "belay logs --follow ~/ascend/log"},
      [args, &context] { return Logs(*args, context); });
  command
      ->add_option("PATH", args->paths,
                   context.T("files, folders, archives (tar, zip, 7z, gz, zst, "
                             "xz), or - for standard input",
                             "文件、文件夹、归档（tar、zip、7z、gz、zst、xz），"
                             "或 - 表示标准输入"))
      ->required();
  command->add_flag("--follow", args->follow,
                    context.T("keep reading and tell what comes; Ctrl-C ends "
                              "with the whole report",
                              "持续读取并即时报告；Ctrl-C 结束并给出完整报告"));
  command
      ->add_option("--threads", args->threads,
                   context.T("files read at once (default: cores)",
                             "同时读取的线程数（默认：核心数）"))
      ->check(CLI::Range(1, 1024));
  command->add_option("--catalogue", args->catalogue,
                      context.T("a folder with more catalogue files",
                                "额外的目录文件所在文件夹"));
  command->add_option(
      "--out", args->out,
      context.T("HTML report with a timeline", "带时间线的 HTML 报告"));
  AddJsonFlag(*command, context);
}

}  // namespace belay::apps
