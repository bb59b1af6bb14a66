// SPDX-License-Identifier: Apache-2.0
// belay explain: what an id, a code, a variable or a message means, why it
// happens and what to do.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "apps/belay/commands.h"
#include "base/error_ids.h"
#include "diag/lookup.h"

namespace belay::apps {
namespace {

using nlohmann::ordered_json;

struct ExplainArgs {
  std::vector<std::string> words;
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

Status Unknown(const std::string& query, const diag::Answer& answer,
               const Context& context) {
  std::string nearest;
  for (const std::string& near : answer.nearest) {
    nearest += nearest.empty() ? context.T("nearest: ", "相近的有：") : ", ";
    nearest += near;
  }
  return MakeError(
      kArgUnknownId,
      {.where = "", .what = nearest, .expected = "", .got = query});
}

// One line of an answer with several entries.
std::string LineOf(const diag::Hit& hit, const Context& context) {
  return hit.code != nullptr
             ? diag::CodeLine(*hit.code, *hit.entry, context.lang)
             : hit.entry->title.in(context.lang);
}

void PrintSeveral(const diag::Answer& answer, const Context& context) {
  size_t id_width = 0;
  for (const diag::Hit& hit : answer.hits) {
    id_width = std::max(id_width, hit.entry->id.size());
  }
  for (const diag::Hit& hit : answer.hits) {
    context.out << hit.entry->id
                << std::string(id_width + 2 - hit.entry->id.size(), ' ')
                << LineOf(hit, context) << "\n";
  }
  context.out << "\n  "
              << context.T("more: belay explain ID", "详情：belay explain 编号")
              << "\n";
}

ordered_json HitToJson(const diag::Hit& hit, const Context& context) {
  ordered_json json = diag::EntryToJson(*hit.entry, context.lang);
  json["matched"] = hit.code != nullptr ? hit.code->code : "";
  return json;
}

void PrintAnswer(const std::string& query, const diag::Answer& answer,
                 const Context& context) {
  const diag::Hit& first = answer.hits.front();
  if (context.json) {
    ordered_json json;
    if (answer.is_clear) json = HitToJson(first, context);
    json["query"] = query;
    json["found_by"] = diag::NameOf(answer.by);
    json["results"] = ordered_json::array();
    for (const diag::Hit& hit : answer.hits) {
      json["results"].push_back(HitToJson(hit, context));
    }
    PrintJson(context, json);
    return;
  }
  if (!answer.is_clear) {
    PrintSeveral(answer, context);
    return;
  }
  if (answer.by == diag::FoundBy::kTypo) {
    context.out << context.T("Taken as ", "按此理解：")
                << (first.code != nullptr && !first.code->symbol.empty()
                        ? first.code->symbol
                        : first.entry->id)
                << "\n\n";
  }
  if (first.code != nullptr) {
    context.out << diag::CodeLine(*first.code, *first.entry, context.lang)
                << "\n\n";
  }
  context.out << diag::RenderEntry(*first.entry, context.out_style);
}

StatusOr<ExitCode> Explain(const ExplainArgs& args, const Context& context) {
  // The context's own catalogue may hold the errors only.
  BELAY_ASSIGN_OR_RETURN(diag::Catalogue catalogue,
                         diag::Catalogue::LoadEmbedded());
  if (!args.folder.empty()) {
    BELAY_RETURN_IF_ERROR(catalogue.AddFolder(args.folder));
  }
  std::string query;
  for (const std::string& word : args.words) {
    query += (query.empty() ? "" : " ") + word;
  }
  if (args.list == !query.empty()) {
    return MakeError(kArgUsage, {.where = "belay explain",
                                 .what = context.T(
                                     "either an id, a code or words, or --list",
                                     "请给出编号、错误码或文字，或使用 --list"),
                                 .expected = "",
                                 .got = ""});
  }
  if (args.list) {
    PrintList(catalogue, context);
    return ExitCode::kOk;
  }
  const diag::Answer answer = diag::LookUp(catalogue, query);
  if (answer.hits.empty()) return Unknown(query, answer, context);
  PrintAnswer(query, answer, context);
  return ExitCode::kOk;
}

}  // namespace

void AddExplain(CLI::App& app, Context& context) {
  auto args = std::make_shared<ExplainArgs>();
  CLI::App* command = AddCommand(
      app, context,
      {.name = "explain",
       .about = context.T(
           "What a code, a variable or a message means, and what to do",
           "解释错误码、环境变量或报错文字：原因与处理办法"),
       .example = "belay explain CKPT-001\nbelay explain 507034\n"
                  "belay explain ASCEND_MEM_SIZE\n"
                  "belay explain hccl socket timeout --lang zh\n"
                  "belay explain --list --lang zh"},
      [args, &context] { return Explain(*args, context); });
  command->add_option(
      "WHAT", args->words,
      context.T("an id, a code, a symbol, a variable, or words of a message",
                "编号、错误码、符号、环境变量，或报错中的文字"));
  command->add_flag(
      "--list", args->list,
      context.T("all ids with their titles", "列出全部编号和标题"));
  command->add_option("--catalogue", args->folder,
                      context.T("a folder with more catalogue files",
                                "额外的目录文件所在文件夹"));
  AddJsonFlag(*command, context);
}

}  // namespace belay::apps
