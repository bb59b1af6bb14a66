// SPDX-License-Identifier: Apache-2.0
// What every command gets: where to write, in which language, and how to
// register itself. A command is one file:
//
//   void AddFrobnicate(CLI::App& app, Context& context) {
//     auto args = std::make_shared<Args>();
//     CLI::App* command = AddCommand(
//         app, context,
//         {.name = "frobnicate",
//          .about = context.T("Turns knobs", "旋转旋钮"),
//          .example = "belay frobnicate --knob 3"},
//         [args, &context] { return Frobnicate(*args, context); });
//     command->add_option("--knob", args->knob, context.T("which", "哪一个"));
//     AddJsonFlag(*command, context);
//   }
//
// and one line in commands.cc. StatusOr<ExitCode> Frobnicate(...) writes its
// result to context.out and returns kOk, kFindings or an error; the shell
// prints the error and chooses the exit code.
#ifndef BELAY_APPS_BELAY_SHELL_CONTEXT_H_
#define BELAY_APPS_BELAY_SHELL_CONTEXT_H_

#include <functional>
#include <istream>
#include <nlohmann/json_fwd.hpp>
#include <ostream>
#include <string>

#include "base/error.h"
#include "diag/catalogue.h"
#include "diag/lang.h"
#include "diag/render.h"

namespace CLI {
class App;
}  // namespace CLI

namespace belay::apps {

// docs/commands.md.
enum class ExitCode : int {
  kOk = 0,
  kFindings = 1,       // the command worked and found something wrong
  kUsage = 2,          // ARG-*: what was typed
  kFailed = 3,         // every other error
  kInterrupted = 130,  // SYS-004; 128 + SIGINT, as shells do
};

// The process as main() sees it, so that tests can make one up.
struct Environment {
  std::ostream& out;
  std::ostream& err;
  diag::Lang lang = diag::Lang::kEn;  // of the locale
  bool out_is_tty = false;
  bool err_is_tty = false;
  bool no_color = false;  // NO_COLOR is set, or the terminal is dumb
  int columns = 80;
  std::istream* in = nullptr;  // standard input; null = empty
};

using CommandFn = std::function<StatusOr<ExitCode>()>;

struct Context {
  std::ostream& out;                 // results
  std::ostream& err;                 // errors, warnings, progress
  const diag::Catalogue& catalogue;  // the errors (Part::kErrors)
  diag::Lang lang = diag::Lang::kEn;
  bool json = false;
  bool err_is_tty = false;
  diag::RenderOptions out_style;  // for text on `out`
  diag::RenderOptions err_style;  // for text on `err`
  CommandFn command;              // the one that was chosen
  std::istream* in = nullptr;     // standard input; null = empty

  // The text in the user's language.
  const char* T(const char* en, const char* zh) const {
    return lang == diag::Lang::kZh ? zh : en;
  }
};

struct CommandInfo {
  const char* name;
  const char* about;    // one line, in the user's language
  const char* example;  // one or more command lines, shown at the end of --help
};

// Adds a command; the caller adds its options to what is returned.
CLI::App* AddCommand(CLI::App& app, Context& context, const CommandInfo& info,
                     CommandFn run);

// --json: sets context.json. Errors then come as {"error": {...}} on stdout
// too.
void AddJsonFlag(CLI::App& command, Context& context);

// Writes one JSON document and a newline. Bytes that are not UTF-8 (paths may
// hold any) become U+FFFD.
void PrintJson(const Context& context, const nlohmann::ordered_json& json);

// Prints an error or a warning, by its severity in the catalogue, to
// context.err.
void PrintStatus(const Context& context, const Status& status);

ExitCode ExitCodeOf(const Status& error);

}  // namespace belay::apps

#endif  // BELAY_APPS_BELAY_SHELL_CONTEXT_H_
