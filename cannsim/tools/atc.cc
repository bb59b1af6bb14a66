// SPDX-License-Identifier: Apache-2.0
// atc of the simulator: reads the command line as the real one does and says
// what is wrong with it. It compiles nothing yet, and says so.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <string>

#include "cannsim/config/settings.h"

namespace {

constexpr char kUsage[] =
    "atc (cannsim): checks the options of the Ascend model compiler\n"
    "\n"
    "  --mode=0|1|3|5|6        compile, to JSON, precheck, txt to JSON, show\n"
    "  --framework=0|1|3|5     Caffe, MindSpore, TensorFlow, ONNX\n"
    "  --model=FILE --output=FILE --soc_version=NAME --input_shape=...\n"
    "  --om=FILE --json=FILE   for modes 1, 5 and 6\n"
    "  --version               of the toolkit\n"
    "\n"
    "Example: atc --model=m.onnx --framework=5 --output=m "
    "--soc_version=Ascend910B3\n";

// Options that the real program takes. `unchecked` ones are passed over here.
constexpr const char* kOptions[] = {
    "mode",
    "framework",
    "model",
    "weight",
    "output",
    "om",
    "json",
    "soc_version",
    "input_format",
    "input_shape",
    "input_shape_range",
    "dynamic_batch_size",
    "dynamic_image_size",
    "dynamic_dims",
    "out_nodes",
    "output_type",
    "insert_op_conf",
    "input_fp16_nodes",
    "is_input_adjust_hw_layout",
    "is_output_adjust_hw_layout",
    "op_name_map",
    "external_weight",
    "precision_mode",
    "precision_mode_v2",
    "op_precision_mode",
    "op_select_implmode",
    "optypelist_for_implmode",
    "allow_hf32",
    "keep_dtype",
    "customize_dtypes",
    "modify_mixlist",
    "fusion_switch_file",
    "optimization_switch",
    "oo_level",
    "jit_compile",
    "buffer_optimize",
    "disable_reuse_memory",
    "enable_single_stream",
    "topo_sorting_mode",
    "static_model_ops_lower_limit",
    "aicore_num",
    "core_type",
    "virtual_type",
    "deterministic",
    "deterministic_level",
    "op_debug_level",
    "debug_dir",
    "log",
    "dump_mode",
    "status_check",
    "op_compiler_cache_mode",
    "op_compiler_cache_dir",
    "check_report",
    "display_model_info",
    "host_env_os",
    "host_env_cpu",
    "singleop",
    "raw_ge_options",
    "compression_optimize_conf",
    "cluster_config",
    "mdl_bank_path",
    "op_bank_path",
    "enable_small_channel",
};

using Options = std::map<std::string, std::string>;

// "" or what is wrong.
std::string Parse(int argc, char** argv, Options* options) {
  for (int i = 1; i < argc; ++i) {
    std::string text = argv[i];
    const size_t begin = text.find_first_not_of('-');
    if (begin == 0 || begin == std::string::npos) {
      return fmt::format("'{}' is no option", text);
    }
    text.erase(0, begin);
    const size_t equal = text.find('=');
    const std::string name = text.substr(0, equal);
    if (std::find_if(std::begin(kOptions), std::end(kOptions),
                     [&](const char* known) { return name == known; }) ==
        std::end(kOptions)) {
      return fmt::format("there is no option --{}", name);
    }
    if (equal == std::string::npos) {
      return fmt::format("--{} needs a value", name);
    }
    (*options)[name] = text.substr(equal + 1);
  }
  return "";
}

std::string Need(const Options& options,
                 std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const auto it = options.find(name);
    if (it == options.end() || it->second.empty()) {
      return fmt::format("--{} is needed in this mode", name);
    }
  }
  return "";
}

std::string NeedFile(const Options& options, const char* name) {
  const std::string& path = options.at(name);
  if (std::filesystem::exists(path)) return "";
  return fmt::format("--{}: {} does not exist", name, path);
}

// At most one of the three ways to have gears.
std::string CheckGears(const Options& options) {
  int n = 0;
  for (const char* name :
       {"dynamic_batch_size", "dynamic_image_size", "dynamic_dims"}) {
    n += static_cast<int>(options.count(name));
  }
  if (n > 1) {
    return "--dynamic_batch_size, --dynamic_image_size and --dynamic_dims "
           "exclude each other";
  }
  if (options.count("precision_mode") > 0 &&
      options.count("precision_mode_v2") > 0) {
    return "--precision_mode and --precision_mode_v2 exclude each other";
  }
  return "";
}

std::string CheckCompile(const Options& options) {
  std::string why = Need(options, {"model", "framework"});
  if (why.empty() && options.at("framework") != "0" &&
      options.at("framework") != "1" && options.at("framework") != "3" &&
      options.at("framework") != "5") {
    why = "--framework must be 0, 1, 3 or 5";
  }
  if (why.empty()) why = NeedFile(options, "model");
  if (why.empty() && options.count("mode") == 0) {
    why = Need(options, {"output", "soc_version"});
  }
  if (why.empty()) why = CheckGears(options);
  return why;
}

std::string Check(const Options& options) {
  const auto it = options.find("mode");
  const std::string mode = it == options.end() ? "0" : it->second;
  if (mode == "0" || mode == "3") return CheckCompile(options);
  if (mode == "1" || mode == "5") {
    std::string why = Need(options, {"om", "json"});
    return why.empty() ? NeedFile(options, "om") : why;
  }
  if (mode == "6") {
    std::string why = Need(options, {"om"});
    return why.empty() ? NeedFile(options, "om") : why;
  }
  return fmt::format("--mode={} is none of 0, 1, 3, 5, 6", mode);
}

int Failed(const std::string& why) {
  fmt::print(
      "ATC run failed, Please check the detail log, Try 'atc --help' "
      "for more information\n{}\n",
      why);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string first = argc > 1 ? argv[1] : "--help";
  if (first == "--help" || first == "-h") {
    std::fputs(kUsage, stdout);
    return 0;
  }
  if (first == "--version") {
    fmt::print("atc of cannsim, toolkit {}\n", cannsim::ToolkitRootOfProgram());
    return 0;
  }
  Options options;
  std::string why = Parse(argc, argv, &options);
  if (why.empty()) why = Check(options);
  if (!why.empty()) return Failed("E10001: " + why);
  return Failed(
      "SIM-002 the options are right, but cannsim compiles no models yet");
}
