// SPDX-License-Identifier: Apache-2.0
#include "apps/belay/config/config_file.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "base/error_ids.h"
#include "base/file.h"

namespace belay::apps {
namespace {

std::string PlaceOf(const std::string& where, const toml::source_region& at) {
  return fmt::format("{}:{}:{}", where, at.begin.line, at.begin.column);
}

// What a value would be on the command line; nothing for what none can be.
std::optional<std::string> TextOf(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) {
    return std::to_string(number->get());
  }
  if (const auto* number = node.as_floating_point()) {
    return fmt::format("{}", number->get());
  }
  if (const auto* flag = node.as_boolean()) {
    return flag->get() ? "true" : "false";
  }
  return std::nullopt;
}

// Options that mean nothing in a file.
bool IsForFiles(const CLI::Option& option) {
  const std::string name = option.get_name();
  return name.starts_with("--") && name != "--help" && name != "--version" &&
         name != "--config" && name != "--print-config";
}

class ConfigReader {
 public:
  ConfigReader(std::string where, CLI::App& command)
      : where_(std::move(where)), command_(command) {}

  Status Table(const toml::table& table) {
    for (const auto& [key, node] : table) {
      if (const auto* inner = node.as_table()) {
        BELAY_RETURN_IF_ERROR(Table(*inner));
      } else {
        BELAY_RETURN_IF_ERROR(Value(std::string(key.str()), node));
      }
    }
    return absl::OkStatus();
  }

 private:
  CLI::Option* Find(std::string key) const {
    std::replace(key.begin(), key.end(), '_', '-');
    CLI::Option* option = command_.get_option_no_throw("--" + key);
    return option != nullptr && IsForFiles(*option) ? option : nullptr;
  }

  Status Bad(const std::string& key, const toml::node& node,
             std::string expected, std::string got) const {
    return MakeError(kCfgBadValue, {.where = PlaceOf(where_, node.source()),
                                    .what = key,
                                    .expected = std::move(expected),
                                    .got = std::move(got)});
  }

  Status Value(const std::string& key, const toml::node& node) {
    CLI::Option* option = Find(key);
    if (option == nullptr) {
      return MakeError(kCfgUnknownKey, {.where = PlaceOf(where_, node.source()),
                                        .what = key,
                                        .expected = "",
                                        .got = ""});
    }
    std::vector<std::string> values;
    if (const auto* list = node.as_array()) {
      for (const toml::node& item : *list) {
        const auto text = TextOf(item);
        if (!text) return Bad(key, item, "texts or numbers", "");
        values.push_back(*text);
      }
    } else {
      const auto text = TextOf(node);
      if (!text) return Bad(key, node, "a text, a number, true or false", "");
      values.push_back(*text);
    }
    const bool is_flag = option->get_items_expected_max() == 0;
    if (is_flag && !node.is_boolean()) {
      return Bad(key, node, "true or false", values.empty() ? "" : values[0]);
    }
    if (!is_flag && node.is_boolean()) {
      return Bad(key, node, option->get_type_name(), values[0]);
    }
    if (option->count() > 0) return absl::OkStatus();  // the command line wins
    return Set(key, node, *option, values);
  }

  Status Set(const std::string& key, const toml::node& node,
             CLI::Option& option, const std::vector<std::string>& values) {
    try {
      for (const std::string& value : values) option.add_result(value);
      option.run_callback();
    } catch (const CLI::Error& error) {
      return Bad(key, node, option.get_type_name(),
                 fmt::format("{} ({})", fmt::join(values, ", "), error.what()));
    }
    return absl::OkStatus();
  }

  std::string where_;
  CLI::App& command_;
};

// A number or true / false stands for itself, all else is a text.
std::string TomlValue(const std::string& text) {
  const bool is_plain =
      text == "true" || text == "false" ||
      (!text.empty() &&
       text.find_first_not_of("0123456789.-") == std::string::npos &&
       text.find_first_of("0123456789") != std::string::npos &&
       std::count(text.begin(), text.end(), '.') <= 1);
  if (is_plain) return text;
  std::ostringstream out;
  out << toml::value<std::string>(text);
  return out.str();
}

}  // namespace

Status ApplyConfig(std::string_view toml, const std::string& where,
                   CLI::App& command) {
  try {
    return ConfigReader(where, command).Table(toml::parse(toml));
  } catch (const toml::parse_error& error) {
    return MakeError(kCfgMalformed, {.where = PlaceOf(where, error.source()),
                                     .what = std::string(error.description()),
                                     .expected = "",
                                     .got = ""});
  }
}

Status ApplyConfigFile(const std::string& path, CLI::App& command) {
  BELAY_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  return ApplyConfig(text, path, command);
}

std::string ConfigTemplate(CLI::App& command) {
  std::string out;
  for (CLI::Option* option : command.get_options({})) {
    if (!IsForFiles(*option)) continue;
    const bool is_flag = option->get_items_expected_max() == 0;
    if (!is_flag) option->capture_default_str();
    const std::string value = is_flag ? "false" : option->get_default_str();
    out += fmt::format("# {}\n#{} = {}\n\n", option->get_description(),
                       option->get_name().substr(2), TomlValue(value));
  }
  return out;
}

void AddConfigOptions(CLI::App& command, ConfigArgs& args,
                      const Context& context) {
  command.add_option(
      "--config", args.path,
      context.T("TOML file with these options", "包含这些选项的 TOML 文件"));
  command.add_flag("--print-config", args.print,
                   context.T("print such a file with every option",
                             "输出列出全部选项的此类文件"));
}

}  // namespace belay::apps
