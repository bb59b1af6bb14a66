// SPDX-License-Identifier: Apache-2.0
// belay explain: what a catalogue id means, why it happens and what to do.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "apps/belay/commands.h"
#include "base/error_ids.h"

namespace belay::apps {
namespace {

using nlohmann::ordered_json;

struct ExplainArgs {
  std::string id;
  bool list = false;
  std::string folder;  // more catalogue files
};

void PrintList(const diag::Catalogue& catalogue, const Context& context) {
  if (context.json) {
    ordered_json list = ordered_json::array();
    for (const diag::Entry& entry : catalogue.entries()) {
      list.push_back({{"id", entry.id},
                      {"kind", diag::NameOf(entry.kind)},
                      {"severity", diag::NameOf(entry.severity)},
                      {"title", entry.title.in(context.lang)}});
    }
    PrintJson(context, list);
    return;
  }
  size_t id_width = 0;
  for (const diag::Entry& entry : catalogue.entries()) {
    id_width = std::max(id_width, entry.id.size());
  }
  for (const diag::Entry& entry : catalogue.entries()) {
    context.out << entry.id << std::string(id_width + 2 - entry.id.size(), ' ')
                << entry.title.in(context.lang) << "\n";
  }
}

Status UnknownId(const std::string& id, const diag::Catalogue& catalogue) {
  std::string nearest;
  for (const std::string& near : catalogue.Nearest(id, 3)) {
    nearest += (nearest.empty() ? "" : " / ") + near;
  }
  return MakeError(kArgUnknownId,
                   {.where = "", .what = "", .expected = nearest, .got = id});
}

StatusOr<ExitCode> Explain(const ExplainArgs& args, const Context& context) {
  diag::Catalogue catalogue = context.catalogue;
  if (!args.folder.empty()) {
    BELAY_RETURN_IF_ERROR(catalogue.AddFolder(args.folder));
  }
  if (args.list == !args.id.empty()) {
    return MakeError(kArgUsage,
                     {.where = "belay explain",
                      .what = context.T("either an id or --list",
                                        "请给出一个编号，或使用 --list"),
                      .expected = "",
                      .got = ""});
  }
  if (args.list) {
    PrintList(catalogue, context);
    return ExitCode::kOk;
  }
  const diag::Entry* entry = catalogue.Find(args.id);
  if (entry == nullptr) return UnknownId(args.id, catalogue);
  if (context.json) {
    PrintJson(context, diag::EntryToJson(*entry, context.lang));
  } else {
    context.out << diag::RenderEntry(*entry, context.out_style);
  }
  return ExitCode::kOk;
}

}  // namespace

void AddExplain(CLI::App& app, Context& context) {
  auto args = std::make_shared<ExplainArgs>();
  CLI::App* command = AddCommand(
      app, context,
      {.name = "explain",
       .about = context.T("What an error or a pitfall means, and what to do",
                          "解释错误或陷阱编号：原因与处理办法"),
       .example = "belay explain CKPT-001\nbelay explain --list --lang zh"},
      [args, &context] { return Explain(*args, context); });
  command->add_option("ID", args->id,
                      context.T("for instance CKPT-001", "例如 CKPT-001"));
  command->add_flag(
      "--list", args->list,
      context.T("all ids with their titles", "列出全部编号和标题"));
  command->add_option("--catalogue", args->folder,
                      context.T("a folder with more catalogue files",
                                "额外的目录文件所在文件夹"));
  AddJsonFlag(*command, context);
}

}  // namespace belay::apps
