// SPDX-License-Identifier: Apache-2.0
#include "apps/belay/completion/scripts.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iterator>
#include <vector>

namespace belay::apps {
namespace {

std::vector<const CLI::Option*> OptionsOf(const CLI::App& app) {
  std::vector<const CLI::Option*> options;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_name().starts_with("-")) options.push_back(option);
  }
  return options;
}

std::vector<const CLI::App*> CommandsOf(const CLI::App& app) {
  std::vector<const CLI::App*> commands;
  for (const CLI::App* command : app.get_subcommands({})) {
    if (!command->get_name().empty()) commands.push_back(command);
  }
  return commands;
}

// "--help", "-h".
std::vector<std::string> NamesOf(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_lnames()) {
    names.push_back("--" + name);
  }
  for (const std::string& name : option.get_snames()) {
    names.push_back("-" + name);
  }
  return names;
}

bool TakesValue(const CLI::Option& option) {
  return option.get_items_expected_max() > 0;
}

// "{en,zh}" in the name of the type, as a check for a list of words gives it.
std::vector<std::string> ChoicesOf(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const size_t begin = type.find('{');
  const size_t end = type.find('}', begin);
  std::vector<std::string> choices;
  if (begin == std::string::npos || end == std::string::npos) return choices;
  std::string word;
  for (const char c : type.substr(begin + 1, end - begin - 1) + ",") {
    if (c != ',') {
      word += c;
    } else if (!word.empty()) {
      choices.push_back(std::move(word));
      word.clear();
    }
  }
  return choices;
}

std::string Words(const CLI::App& app) {
  std::string words;
  for (const CLI::Option* option : OptionsOf(app)) {
    for (const std::string& name : NamesOf(*option)) words += name + " ";
  }
  return words;
}

// Single-quoted for a shell.
std::string Quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out + "'";
}

// The text of a description inside zsh's _arguments: brackets and colons mean
// something there.
std::string ZshText(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

std::string ZshSpec(const CLI::Option& option) {
  const auto names = NamesOf(option);
  std::string value;
  if (TakesValue(option)) {
    const auto choices = ChoicesOf(option);
    value = choices.empty() ? std::string(": :_files")
                            : fmt::format(": :({})", fmt::join(choices, " "));
  }
  std::string out;
  for (const std::string& name : names) {
    out += fmt::format(
        " \\\n      {}",
        Quoted(fmt::format("{}[{}]{}", name, ZshText(option.get_description()),
                           value)));
  }
  return out;
}

}  // namespace

std::string BashCompletion(const CLI::App& app) {
  const std::string& name = app.get_name();
  std::string commands;
  for (const CLI::App* command : CommandsOf(app)) {
    commands += command->get_name() + " ";
  }
  std::string out;
  const auto add = [&](const std::string& text) { out += text; };
  add(
      fmt::format("# bash completion of {0}: source <({0} completion bash)\n"
                  "_{0}() {{\n"
                  "  local cur=${{COMP_WORDS[COMP_CWORD]}} "
                  "prev=${{COMP_WORDS[COMP_CWORD-1]}} command= words= i\n"
                  "  COMPREPLY=()\n"
                  "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
                  "    case ${{COMP_WORDS[i]}} in\n",
                  name));
  for (const CLI::App* command : CommandsOf(app)) {
    add(fmt::format("      {0}) command={0}; break ;;\n", command->get_name()));
  }
  add("    esac\n  done\n  case $command:$prev in\n");
  const auto choices = [&](const CLI::App& of, const std::string& pattern) {
    for (const CLI::Option* option : OptionsOf(of)) {
      if (!TakesValue(*option)) continue;
      const auto words = ChoicesOf(*option);
      for (const std::string& flag : NamesOf(*option)) {
        if (words.empty()) {
          add(
              fmt::format("    {}:{}) COMPREPLY=($(compgen -f -- \"$cur\")); "
                          "compopt -o filenames 2>/dev/null; return ;;\n",
                          pattern, flag));
        } else {
          add(fmt::format(
              "    {}:{}) COMPREPLY=($(compgen -W {} -- "
              "\"$cur\")); return ;;\n",
              pattern, flag, Quoted(fmt::format("{}", fmt::join(words, " ")))));
        }
      }
    }
  };
  for (const CLI::App* command : CommandsOf(app)) {
    choices(*command, command->get_name());
  }
  choices(app, "*");
  add("  esac\n  case $command in\n");
  add(fmt::format("    '') words={} ;;\n", Quoted(commands + Words(app))));
  for (const CLI::App* command : CommandsOf(app)) {
    std::string words = Words(*command);
    // Words that a command takes by place, as `belay completion bash`.
    for (const CLI::Option* option : command->get_options()) {
      if (option->get_name().starts_with("-")) continue;
      for (const std::string& choice : ChoicesOf(*option)) {
        words += choice + " ";
      }
    }
    add(fmt::format("    {}) words={} ;;\n", command->get_name(),
                    Quoted(words)));
  }
  add(
      fmt::format("  esac\n"
                  "  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
                  "}}\n"
                  "complete -o default -F _{0} {0}\n",
                  name));
  return out;
}

std::string ZshCompletion(const CLI::App& app) {
  const std::string& name = app.get_name();
  std::string out = fmt::format(
      "#compdef {0}\n"
      "# zsh completion of {0}: put it into a folder of $fpath as _{0}, or\n"
      "# source <({0} completion zsh) after compinit.\n"
      "_{0}() {{\n"
      "  local context state state_descr line\n"
      "  typeset -A opt_args\n"
      "  _arguments -C",
      name);
  for (const CLI::Option* option : OptionsOf(app)) out += ZshSpec(*option);
  out +=
      " \\\n      '1: :->command' \\\n      '*:: :->rest'\n"
      "  case $state in\n    command)\n      local -a commands=(\n";
  for (const CLI::App* command : CommandsOf(app)) {
    out += fmt::format("        {}\n",
                       Quoted(command->get_name() + ":" +
                              ZshText(command->get_description())));
  }
  out +=
      "      )\n      _describe command commands ;;\n"
      "    rest)\n      case $words[1] in\n";
  for (const CLI::App* command : CommandsOf(app)) {
    out += fmt::format("      {})\n      _arguments", command->get_name());
    for (const CLI::Option* option : OptionsOf(*command)) {
      out += ZshSpec(*option);
    }
    bool has_place = false;
    for (const CLI::Option* option : command->get_options()) {
      if (option->get_name().starts_with("-")) continue;
      const auto choices = ChoicesOf(*option);
      if (choices.empty()) continue;
      has_place = true;
      out += fmt::format(" \\\n      '1: :({})'", fmt::join(choices, " "));
    }
    if (!has_place) out += " \\\n      '*: :_files'";
    out += " ;;\n";
  }
  out += fmt::format(
      "      esac ;;\n  esac\n}}\n"
      "if [ \"$funcstack[1]\" = \"_{0}\" ]; then\n  _{0} \"$@\"\n"
      "else\n  compdef _{0} {0}\nfi\n",
      name);
  return out;
}

}  // namespace belay::apps
