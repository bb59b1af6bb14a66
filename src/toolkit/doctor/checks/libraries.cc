// SPDX-License-Identifier: Apache-2.0
// Whether the loader would find the libraries of CANN, whole: what it looks up
// is looked up in the files, and nothing is loaded.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "toolkit/doctor/checks/checks.h"

namespace belay::doctor {
namespace {

// Functions that every program on CANN calls, by the library that it opens
// (data/abi). They may be defined in a library that this one needs: newer
// toolkits split libascendcl.so.
struct Wanted {
  const char* library;
  const char* of;  // package
  std::vector<std::string> symbols;
};

const std::vector<Wanted>& WantedLibraries() {
  static const std::vector<Wanted> wanted = {
      {"libascendcl.so",
       "CANN toolkit",
       {"aclInit", "aclFinalize", "aclrtSetDevice", "aclrtGetSocName",
        "aclrtMalloc", "aclrtFree", "aclrtMemcpyAsync", "aclrtCreateStream",
        "aclrtSynchronizeStream", "aclGetRecentErrMsg"}},
      {"libnnopbase.so",
       "CANN toolkit",
       {"aclCreateTensor", "aclDestroyTensor", "aclCreateIntArray",
        "aclCreateScalar"}},
      {"libhccl.so",
       "CANN toolkit",
       {"HcclGetRootInfo", "HcclCommInitRootInfo", "HcclAllReduce",
        "HcclCommDestroy"}},
      {"libascend_hal.so", "driver", {}},
  };
  return wanted;
}

// The C library and the compiler's are there wherever a program starts.
bool IsOfSystem(const std::string& name) {
  static constexpr std::array<std::string_view, 9> kStarts = {
      "libc.so",  "libm.so",     "libdl.so",     "libpthread.so", "librt.so",
      "ld-linux", "libgcc_s.so", "libstdc++.so", "linux-vdso"};
  return std::any_of(
      kStarts.begin(), kStarts.end(),
      [&](std::string_view start) { return name.starts_with(start); });
}

class Loader {
 public:
  explicit Loader(Patient& patient) : p_(patient) {
    folders_ = Split(p_.facts.Variable("LD_LIBRARY_PATH"), ':');
    n_own_ = folders_.size();
    const auto& configured = p_.facts.loader_folders;
    folders_.insert(folders_.end(), configured.begin(), configured.end());
    const std::string arch = p_.facts.arch + "-linux-gnu";
    for (const std::string& folder :
         {"/lib/" + arch, "/usr/lib/" + arch, std::string("/lib64"),
          std::string("/usr/lib64"), std::string("/lib"),
          std::string("/usr/lib")}) {
      folders_.push_back(folder);
    }
  }

  // The path of a library, in the order of the loader; "" if there is none.
  // `origin`: of the library that needs it, with its own search path.
  std::string Find(const std::string& name, const std::string& origin,
                   const std::vector<std::string>& run_path) {
    for (const std::string& part : run_path) {
      std::string folder = part;
      for (const std::string_view mark : {"${ORIGIN}", "$ORIGIN"}) {
        const size_t at = folder.find(mark);
        if (at != std::string::npos) folder.replace(at, mark.size(), origin);
      }
      if (p_.machine.Stat(folder + "/" + name).exists()) {
        return folder + "/" + name;
      }
    }
    for (const std::string& folder : folders_) {
      if (p_.machine.Stat(folder + "/" + name).exists()) {
        return folder + "/" + name;
      }
    }
    return "";
  }

  size_t n_own() const { return n_own_; }

 private:
  Patient& p_;
  std::vector<std::string> folders_;
  size_t n_own_ = 0;
};

// One library with all that it needs.
class Closure {
 public:
  Closure(Patient& patient, Loader& loader) : p_(patient), loader_(loader) {}

  void Check(const Wanted& wanted, const std::string& path) {
    std::vector<std::string> missing = wanted.symbols;
    std::vector<std::string> queue = {path};
    bool is_known = true;  // every library could be read
    // An installation has about forty.
    for (size_t i = 0; i < queue.size() && i < 128; ++i) {
      const auto object = p_.machine.ReadLibrary(queue[i], missing);
      if (!object) {
        is_known = false;
        continue;
      }
      if (!IsOfThisMachine(queue[i], *object)) return;
      missing = object->lacks;
      const std::string origin = queue[i].substr(0, queue[i].rfind('/'));
      for (const std::string& name : object->needed) {
        if (IsOfSystem(name) || !seen_.insert(name).second) continue;
        const std::string found = loader_.Find(name, origin, object->run_path);
        if (!found.empty()) {
          queue.push_back(found);
        } else {
          is_known = false;
          NotFound(name, queue[i]);
        }
      }
    }
    if (missing.empty() || !is_known) return;
    std::string list;
    for (const std::string& name : missing) {
      list += (list.empty() ? "" : ", ") + name;
    }
    p_.Add("DOCT-038", path, fmt::format("does not define {}", list),
           fmt::format("nm -D {} | grep {}", path, missing[0]));
  }

 private:
  bool IsOfThisMachine(const std::string& path, const SharedObject& object) {
    if (object.is_library &&
        (p_.facts.arch.empty() || object.arch == p_.facts.arch)) {
      return true;
    }
    p_.Add("DOCT-047", path,
           object.is_library ? fmt::format("for {}, this machine is {}",
                                           object.arch, p_.facts.arch)
                             : "is not a shared library",
           "file -L " + path);
    return false;
  }

  void NotFound(const std::string& name, const std::string& needed_by) {
    p_.Add("DOCT-039", needed_by,
           fmt::format("needs {}, which is in no folder of the loader", name),
           fmt::format("ldd {} | grep 'not found'; find / -name '{}*' "
                       "2>/dev/null",
                       needed_by, name));
  }

  Patient& p_;
  Loader& loader_;
  std::set<std::string> seen_;  // of all libraries: each is told once
};

}  // namespace

void CheckLibraries(Patient& patient) {
  const Facts& facts = patient.facts;
  if (facts.cann.empty() || (facts.Variable("ASCEND_HOME_PATH").empty() &&
                             facts.Variable("ASCEND_TOOLKIT_HOME").empty())) {
    return;  // not sourced: one finding of its own (DOCT-024)
  }
  Loader loader(patient);
  Closure closure(patient, loader);
  for (const Wanted& wanted : WantedLibraries()) {
    const std::string path = loader.Find(wanted.library, "", {});
    if (path.empty()) {
      // libnnopbase.so is beside libascendcl.so; one that lacks all is told
      // by the first. The stand-in has no driver, and HCCL only if it was
      // built.
      if (std::string_view(wanted.library) == "libnnopbase.so" ||
          (!facts.simulator.empty() &&
           std::string_view(wanted.library) != "libascendcl.so")) {
        continue;
      }
      const bool is_driver = std::string_view(wanted.of) == "driver";
      patient.Add("DOCT-026", "LD_LIBRARY_PATH",
                  fmt::format("{} ({}) is in none of its {} folders",
                              wanted.library, wanted.of, loader.n_own()),
                  is_driver
                      ? "export LD_LIBRARY_PATH=/usr/local/Ascend/driver/lib64/"
                        "driver:/usr/local/Ascend/driver/lib64/common:"
                        "$LD_LIBRARY_PATH"
                      : "source " + facts.cann_root + "/set_env.sh");
      continue;
    }
    // Stubs are for linking without a driver; calls into them fail.
    if (path.find("/stub") != std::string::npos ||
        path.find("/devlib/") != std::string::npos) {
      patient.Add("DOCT-048", "LD_LIBRARY_PATH",
                  path + " is found first, a stub", "ldconfig -p | grep hal");
      continue;
    }
    closure.Check(wanted, path);
  }
}

}  // namespace belay::doctor
