// SPDX-License-Identifier: Apache-2.0
// CANN's libraries, found at run time. One binary runs with and without CANN:
// nothing of it is linked. Symbols are looked up when they are first called;
// what a library lacks is an answer, not a crash.
#ifndef BELAY_CANN_API_API_H_
#define BELAY_CANN_API_API_H_

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/error.h"
#include "cann_api/abi/functions.h"
#include "cann_api/abi/operators.h"
#include "cann_api/abi/types.h"

namespace belay::cann_api {

// Where the libraries may be; environment variables are read in apps.
struct LoadOptions {
  // Folders with libascendcl.so and the others, the first that has it counts;
  // after them the system's loader is asked.
  std::vector<std::string> folders = {};
  // Custom operator packages, searched before CANN's own operators.
  std::vector<std::string> custom_libraries = {};
};

// What the variables of a CANN environment (ASCEND_HOME_PATH,
// ASCEND_TOOLKIT_HOME, ASCEND_OPP_PATH, ASCEND_CUSTOM_OPP_PATH) say, and the
// usual folders behind them. `variable` gives a variable's value or "".
LoadOptions OptionsFrom(
    const std::function<std::string(const char*)>& variable);

// A function that a library should have and has not.
struct MissingSymbol {
  std::string name;
  std::string cost;       // what is lost
  bool required = false;  // nothing runs without it
};

class Api;

// Looks a symbol up once.
class SymbolBase {
 public:
  SymbolBase(const Api* api, const char* name) : api_(api), name_(name) {}
  const char* name() const { return name_; }

 protected:
  void* Find() const;

 private:
  const Api* api_;
  const char* name_;
  mutable std::atomic<bool> looked_{false};
  mutable std::atomic<void*> found_{nullptr};
};

// A function by its name. Calling one that is not there gives 200001 (API not
// supported) or null.
template <typename F>
class Symbol;
template <typename R, typename... Args>
class Symbol<R(Args...)> : public SymbolBase {
 public:
  using SymbolBase::SymbolBase;
  explicit operator bool() const { return Find() != nullptr; }
  R operator()(Args... args) const {
    auto* f = reinterpret_cast<R (*)(Args...)>(Find());
    if (f != nullptr) return f(args...);
    if constexpr (std::is_pointer_v<R>) {
      return nullptr;
    } else {
      return 200001;
    }
  }
};

// Both phases of an operator.
template <typename F>
class Operator;
template <typename... Args>
class Operator<void(Args...)> {
 public:
  Operator(const Api* api, const char* name, const char* phase1)
      : plan(api, phase1), run(api, name) {}
  const char* name() const { return run.name(); }
  explicit operator bool() const { return plan && run; }

  // Checks the arguments, says how much workspace is needed, and makes an
  // executor.
  Symbol<aclnnStatus(Args..., uint64_t*, aclOpExecutor**)> plan;
  // Queues the work; consumes the executor unless it was made repeatable.
  Symbol<aclnnStatus(void*, uint64_t, aclOpExecutor*, aclrtStream)> run;
};

// Libraries stay loaded until the process ends: CANN's own do not survive being
// unloaded.
class Api {
 public:
  // CANN-001 with the places that were searched.
  static StatusOr<std::unique_ptr<Api>> Load(const LoadOptions& options);

  Api(const Api&) = delete;
  Api& operator=(const Api&) = delete;

  // The address of a symbol in custom packages, then in CANN's libraries;
  // null when there is none.
  void* Find(const char* name) const;
  bool Has(const std::string& op) const;  // "HcPre": both phases
  // Everything that we may call and that is not there, but for operators that
  // we do without.
  std::vector<MissingSymbol> Missing() const;
  // CANN-002 when something is missing without which nothing runs.
  Status CheckRequired() const;
  // Files that were loaded, for reports.
  const std::vector<std::string>& libraries() const { return libraries_; }

#define BELAY_MEMBER(name, type, cost) Symbol<type> name{this, #name};
  BELAY_ACL_FUNCTIONS(BELAY_MEMBER)
#undef BELAY_MEMBER
#define BELAY_MEMBER(name, args)                \
  Operator<void args> name{this, "aclnn" #name, \
                           "aclnn" #name "GetWorkspaceSize"};
  BELAY_ACLNN_OPERATORS(BELAY_MEMBER)
  BELAY_ACLNN_OPTIONAL_OPERATORS(BELAY_MEMBER)
#undef BELAY_MEMBER

 private:
  Api() = default;
  bool Open(const std::string& file);

  std::vector<void*> handles_;  // custom packages first
  std::vector<std::string> libraries_;
};

}  // namespace belay::cann_api

#endif  // BELAY_CANN_API_API_H_
