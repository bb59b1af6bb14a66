// SPDX-License-Identifier: Apache-2.0
#include <charconv>
#include <filesystem>
#include <system_error>

#include "apps/belay/doctor/machine.h"
#include "apps/belay/serve/serve.h"
#include "base/error_ids.h"
#include "toolkit/tune/bind.h"

namespace belay::apps {
namespace {

constexpr int kCommandTimeoutMs = 1500;

// The bytes of the checkpoint, and a fifth for what is beside the weights.
uint64_t BytesFor(const std::string& model) {
  namespace fs = std::filesystem;
  std::error_code error;
  uint64_t bytes = 0;
  if (fs::is_regular_file(model, error)) {
    bytes = fs::file_size(model, error);
  } else {
    fs::directory_iterator it(model, error);
    for (const fs::directory_iterator end; !error && it != end;
         it.increment(error)) {
      std::error_code ignored;
      if (it->is_regular_file(ignored)) bytes += it->file_size(ignored);
    }
  }
  return bytes / 5 * 6;
}

}  // namespace

StatusOr<std::string> BindServer(const ServeArgs& args,
                                 const Context& context) {
  if (args.numa == "off") return std::string();
  tune::BindRequest request;
  if (args.numa != "auto") {
    const char* end = args.numa.data() + args.numa.size();
    if (std::from_chars(args.numa.data(), end, request.node).ptr != end ||
        request.node < 0) {
      return MakeError(kArgUsage, {.where = "--numa",
                                   .what = "",
                                   .expected = "auto, off or a node",
                                   .got = args.numa});
    }
  }
  request.n_threads = args.model.threads.value_or(0);
  request.bytes = BytesFor(args.model.folder);
  request.on_npu = args.model.backend == "cann";
  const auto machine = ThisMachine(kCommandTimeoutMs);
  const doctor::Host host =
      doctor::ReadHost(*machine, doctor::ReadFacts(*machine));
  BELAY_ASSIGN_OR_RETURN(const tune::BindChoice choice,
                         tune::ChooseBinding(host, request));
  BELAY_RETURN_IF_ERROR(tune::Bind(choice));
  if (choice.node < 0) {
    return context.T("NUMA: not bound, ", "NUMA：未绑定，") + choice.why;
  }
  return context.T("NUMA: bound to node ", "NUMA：绑定到节点 ") +
         std::to_string(choice.node) + " (CPU " +
         doctor::FormatCpuList(choice.cpus) + "), " + choice.why;
}

}  // namespace belay::apps
