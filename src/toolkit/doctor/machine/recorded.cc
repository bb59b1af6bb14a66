// SPDX-License-Identifier: Apache-2.0
#include "toolkit/doctor/machine/recorded.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <utility>

#include "base/error_ids_toolkit.h"
#include "base/file.h"
#include "toolkit/doctor/machine/bundle.h"

namespace belay::doctor {
namespace {

using nlohmann::json;

std::string TextOr(const json& object, const char* name,
                   const std::string& fallback) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>()
                                                     : fallback;
}

// Objects of the top level that may be missing.
const json& Part(const json& machine, const char* name) {
  static const json kNothing = json::object();
  const auto found = machine.find(name);
  return found != machine.end() && found->is_object() ? *found : kNothing;
}

std::vector<std::string> Texts(const json& object, const char* name) {
  std::vector<std::string> texts;
  const auto found = object.find(name);
  if (found == object.end() || !found->is_array()) return texts;
  for (const json& text : *found) {
    if (text.is_string()) texts.push_back(text.get<std::string>());
  }
  return texts;
}

class RecordedMachine : public Machine {
 public:
  explicit RecordedMachine(json machine) : machine_(std::move(machine)) {
    for (const auto& [path, state] : Part(machine_, "paths").items()) {
      if (TextOr(state, "kind", "file") == "none") continue;
      for (size_t slash = path.rfind('/');
           slash != std::string::npos && slash > 0;
           slash = path.rfind('/', slash - 1)) {
        const size_t next = path.find('/', slash + 1);
        children_[path.substr(0, slash)].insert(path.substr(
            slash + 1, next == std::string::npos ? next : next - slash - 1));
      }
    }
  }

  std::optional<std::string> Read(const std::string& path) override {
    const json& paths = Part(machine_, "paths");
    const auto found = paths.find(path);
    if (found == paths.end() || !found->is_object() ||
        !found->contains("text") || !(*found)["text"].is_string()) {
      return std::nullopt;
    }
    return (*found)["text"].get<std::string>();
  }

  PathState Stat(const std::string& path) override {
    PathState state;
    const json& paths = Part(machine_, "paths");
    const auto found = paths.find(path);
    if (found == paths.end() || !found->is_object()) {
      if (children_.contains(path) || Part(machine_, "lists").contains(path)) {
        state.kind = PathKind::kFolder;
        state.can_read = true;
      }
      return state;
    }
    const std::string kind = TextOr(*found, "kind", "file");
    const std::string access = TextOr(*found, "access", "r");
    state.kind = kind == "file"     ? PathKind::kFile
                 : kind == "folder" ? PathKind::kFolder
                 : kind == "device" ? PathKind::kDevice
                 : kind == "other"  ? PathKind::kOther
                                    : PathKind::kNone;
    state.is_link = kind == "dangling";
    if (const auto bytes = found->find("bytes");
        bytes != found->end() && bytes->is_number_unsigned()) {
      state.bytes = bytes->get<uint64_t>();
    }
    state.can_read = access.find('r') != std::string::npos;
    state.can_write = access.find('w') != std::string::npos;
    return state;
  }

  std::vector<std::string> List(const std::string& folder) override {
    std::set<std::string> names;
    const json& lists = Part(machine_, "lists");
    if (const auto list = lists.find(folder);
        list != lists.end() && list->is_array()) {
      for (const json& name : *list) {
        if (name.is_string()) names.insert(name.get<std::string>());
      }
    }
    if (const auto found = children_.find(folder); found != children_.end()) {
      names.insert(found->second.begin(), found->second.end());
    }
    return {names.begin(), names.end()};
  }

  CommandOutput Run(const std::string& command) override {
    CommandOutput output;
    const json& commands = Part(machine_, "commands");
    const auto found = commands.find(command);
    if (found == commands.end() || !found->is_object()) return output;
    output.is_found = true;
    const auto status = found->find("status");
    output.status = status != found->end() && status->is_number_integer()
                        ? status->get<int>()
                        : 0;
    output.out = TextOr(*found, "out", "");
    return output;
  }

  std::map<std::string, std::string> Variables() override {
    std::map<std::string, std::string> variables;
    for (const auto& [name, value] : Part(machine_, "variables").items()) {
      if (value.is_string()) variables[name] = value.get<std::string>();
    }
    return variables;
  }

  std::string Arch() override { return TextOr(machine_, "arch", "aarch64"); }

  std::optional<uint64_t> FreeBytes(const std::string& path) override {
    return Disk(path, "free");
  }
  std::optional<uint64_t> TotalBytes(const std::string& path) override {
    return Disk(path, "total");
  }

  std::optional<SharedObject> ReadLibrary(
      const std::string& path,
      const std::vector<std::string>& wanted) override {
    const json& libraries = Part(machine_, "libraries");
    const auto found = libraries.find(path);
    if (found == libraries.end() || !found->is_object()) return std::nullopt;
    SharedObject object;
    object.arch = TextOr(*found, "arch", "");
    object.is_library = !object.arch.empty();
    object.needed = Texts(*found, "needed");
    object.run_path = Texts(*found, "run_path");
    const std::vector<std::string> lacks = Texts(*found, "lacks");
    for (const std::string& name : wanted) {
      if (std::find(lacks.begin(), lacks.end(), name) != lacks.end()) {
        object.lacks.push_back(name);
      }
    }
    return object;
  }

 private:
  std::optional<uint64_t> Disk(const std::string& path, const char* what) {
    const json& disks = Part(machine_, "disks");
    const auto found = disks.find(path);
    if (found == disks.end() || !found->is_object()) return std::nullopt;
    const auto value = found->find(what);
    if (value == found->end() || !value->is_number_unsigned()) {
      return std::nullopt;
    }
    return value->get<uint64_t>();
  }

  json machine_;
  std::map<std::string, std::set<std::string>> children_;
};

Status NotAMachine(const std::string& where, const std::string& what) {
  return MakeError(kDoctBadBundle,
                   {.where = where, .what = what, .expected = "", .got = ""});
}

bool IsKept(const std::string& name) {
  static constexpr std::string_view kStarts[] = {
      "ASCEND",  "HCCL",         "TORCH",      "PYTORCH",      "ACL",
      "ATB",     "NPU",          "VLLM",       "OMP",          "CUDA",
      "LD_",     "PYTHON",       "TASK_",      "RANK",         "TF_CPP",
      "STREAMS", "CPU_AFFINITY", "PER_STREAM", "MULTI_STREAM", "INF_NAN",
      "OOM_",    "P2P_",         "HCOMM",      "AUTO_USE",     "TOOLCHAIN",
      "GE_",     "WORLD_SIZE",   "LOCAL_RANK", "CONDA_PREFIX", "VIRTUAL_ENV",
      "HOME"};
  return std::any_of(
      std::begin(kStarts), std::end(kStarts),
      [&](std::string_view start) { return name.starts_with(start); });
}

std::string AboutNpus(const std::string& log) {
  std::string kept;
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    for (const std::string_view word :
         {"ascend", "davinci", "devmm", "drv_", "Out of memory: Kill"}) {
      if (line.find(word) == std::string::npos) continue;
      kept += line + "\n";
      break;
    }
  }
  return kept;
}

bool LooksSecret(const std::string& name) {
  static constexpr std::string_view kParts[] = {"KEY", "TOKEN", "SECRET",
                                                "PASS", "CREDENTIAL"};
  return std::any_of(std::begin(kParts), std::end(kParts),
                     [&](std::string_view part) {
                       return name.find(part) != std::string::npos;
                     });
}

}  // namespace

StatusOr<std::unique_ptr<Machine>> ParseMachine(std::string_view text,
                                                const std::string& where) {
  const json machine = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!machine.is_object() || !machine.contains("format") ||
      machine["format"] != 1) {
    return NotAMachine(where, "machine.json is not JSON with \"format\": 1");
  }
  return std::make_unique<RecordedMachine>(machine);
}

StatusOr<std::unique_ptr<Machine>> OpenMachine(const std::string& path) {
  constexpr size_t kMax = size_t{64} << 20;
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    const std::string file = path + "/machine.json";
    if (!std::filesystem::exists(file, error)) {
      return NotAMachine(path, "machine.json is missing");
    }
    BELAY_ASSIGN_OR_RETURN(const std::string text, ReadFile(file, kMax));
    return ParseMachine(text, file);
  }
  BELAY_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path, kMax));
  if (bytes.starts_with('{')) return ParseMachine(bytes, path);
  BELAY_ASSIGN_OR_RETURN(const std::string text, UnpackBundle(bytes, path));
  return ParseMachine(text, path);
}

struct Recorder::Notes {
  json machine = {{"format", 1}};
};

Recorder::Recorder(Machine& machine)
    : machine_(machine), notes_(std::make_unique<Notes>()) {}
Recorder::~Recorder() = default;

std::optional<std::string> Recorder::Read(const std::string& path) {
  auto text = machine_.Read(path);
  if (text) notes_->machine["paths"][path]["text"] = *text;
  return text;
}

PathState Recorder::Stat(const std::string& path) {
  const PathState state = machine_.Stat(path);
  if (!state.exists() && !state.is_link) return state;
  static constexpr const char* kKinds[] = {"dangling", "file", "folder",
                                           "device", "other"};
  json& note = notes_->machine["paths"][path];
  note["kind"] = kKinds[static_cast<size_t>(state.kind)];
  note["access"] =
      std::string(state.can_read ? "r" : "") + (state.can_write ? "w" : "");
  if (state.bytes > 0) note["bytes"] = state.bytes;
  return state;
}

std::vector<std::string> Recorder::List(const std::string& folder) {
  std::vector<std::string> names = machine_.List(folder);
  if (!names.empty()) notes_->machine["lists"][folder] = names;
  return names;
}

CommandOutput Recorder::Run(const std::string& command) {
  CommandOutput output = machine_.Run(command);
  // A kernel log tells much that is nobody's business.
  if (command.starts_with("dmesg")) output.out = AboutNpus(output.out);
  if (output.is_found) {
    notes_->machine["commands"][command] = {{"status", output.status},
                                            {"out", output.out}};
  }
  return output;
}

std::map<std::string, std::string> Recorder::Variables() {
  auto variables = machine_.Variables();
  for (const auto& [name, value] : variables) {
    if (!IsKept(name)) continue;
    notes_->machine["variables"][name] =
        LooksSecret(name) ? "(removed)" : value;
  }
  return variables;
}

std::string Recorder::Arch() {
  std::string arch = machine_.Arch();
  notes_->machine["arch"] = arch;
  return arch;
}

std::optional<uint64_t> Recorder::FreeBytes(const std::string& path) {
  const auto bytes = machine_.FreeBytes(path);
  if (bytes) notes_->machine["disks"][path]["free"] = *bytes;
  return bytes;
}

std::optional<uint64_t> Recorder::TotalBytes(const std::string& path) {
  const auto bytes = machine_.TotalBytes(path);
  if (bytes) notes_->machine["disks"][path]["total"] = *bytes;
  return bytes;
}

std::optional<SharedObject> Recorder::ReadLibrary(
    const std::string& path, const std::vector<std::string>& wanted) {
  const auto object = machine_.ReadLibrary(path, wanted);
  if (!object) return object;
  json& note = notes_->machine["libraries"][path];
  note["arch"] = object->is_library ? object->arch : "";
  note["needed"] = object->needed;
  if (!object->run_path.empty()) note["run_path"] = object->run_path;
  // It may be asked again, for other symbols.
  std::set<std::string> lacks(object->lacks.begin(), object->lacks.end());
  for (const std::string& one : Texts(note, "lacks")) lacks.insert(one);
  note["lacks"] = lacks;
  return object;
}

std::string Recorder::ToJson() const {
  return notes_->machine.dump(1, ' ', false, json::error_handler_t::replace) +
         "\n";
}

Status Recorder::Write(const std::string& path) const {
  BELAY_ASSIGN_OR_RETURN(const std::string bytes, PackBundle(ToJson(), path));
  return WriteFileAtomically(path, bytes);
}

}  // namespace belay::doctor
