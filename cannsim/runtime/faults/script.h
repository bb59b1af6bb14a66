// SPDX-License-Identifier: Apache-2.0
// The language of fault scripts (docs/cannsim.md): which piece of work goes
// wrong, and how. One statement a line, or several with ";"; "#" begins a
// comment; words in any case.
//
//   at 120th MatMul on device 1 return 507035
//   at byte 2GiB on device 0 return 207001
//   every 3rd copy on stream 2 slow 10; from 5th task lose device
//   always RmsNorm missing
#ifndef BELAY_CANNSIM_RUNTIME_FAULTS_SCRIPT_H_
#define BELAY_CANNSIM_RUNTIME_FAULTS_SCRIPT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cannsim {

struct FaultRule {
  enum class When { kAt, kEvery, kFrom };  // the n-th; each n-th; n-th and on
  enum class What { kTask, kOperator, kCopy, kFill, kMalloc, kWait, kByte };
  enum class Action { kReturn, kHang, kSlow, kIgnore, kLose, kMissing };

  When when = When::kFrom;
  uint64_t n = 1;  // of When; for kByte the byte
  What what = What::kTask;
  std::string name;  // lower case, without "aclnn"; "": any name
  int device = -1;   // -1: any
  int stream = -1;
  Action action = Action::kReturn;
  int code = 0;       // of kReturn
  double factor = 1;  // of kSlow
  int line = 0;       // in the script, from 1
};

// Parses any bytes. False and a sentence with line and column in `error`.
bool ParseFaultScript(std::string_view text, std::vector<FaultRule>* rules,
                      std::string* error);

// A name as FaultRule::name holds it.
std::string FaultName(std::string_view name);

}  // namespace cannsim

#endif  // BELAY_CANNSIM_RUNTIME_FAULTS_SCRIPT_H_
