// SPDX-License-Identifier: Apache-2.0
// Any bytes as a recorded machine, as its archive, as what npu-smi, the version
// files and the kernel say, and as a shared library.
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"
#include "diag/catalogue.h"
#include "toolkit/doctor/doctor.h"
#include "toolkit/doctor/facts/host.h"
#include "toolkit/doctor/machine/bundle.h"
#include "toolkit/doctor/machine/recorded.h"
#include "toolkit/doctor/report/report.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t n_bytes) {
  namespace doctor = belay::doctor;
  static const auto catalogue = belay::diag::Catalogue::LoadEmbedded();
  BELAY_CHECK(catalogue.ok());
  const std::string text(reinterpret_cast<const char*>(data), n_bytes);
  const auto judge = [&](const std::string& machine) {
    const auto recorded = doctor::ParseMachine(machine, "fuzz");
    if (!recorded.ok()) {
      BELAY_CHECK(!belay::ErrorIdOf(recorded.status()).empty());
      return;
    }
    doctor::Options options;
    options.model = "/m";
    const doctor::Verdict verdict =
        doctor::Examine(**recorded, *catalogue, options);
    const std::string report = doctor::VerdictToText(verdict, *catalogue, {});
    BELAY_CHECK(report.find('\x1b') == std::string::npos);
    (void)doctor::VerdictToJson(verdict, *catalogue, belay::diag::Lang::kEn);
  };
  judge(text);
  if (const auto unpacked = doctor::UnpackBundle(text, "fuzz"); unpacked.ok()) {
    judge(*unpacked);
  }
  (void)doctor::ReadElf(
      [&](uint64_t offset, void* to, size_t bytes) {
        if (offset > n_bytes || bytes > n_bytes - offset) return false;
        std::memcpy(to, data + offset, bytes);
        return true;
      },
      {"one", "aclInit"});
  if (const auto cpus = doctor::ParseCpuList(text)) {
    BELAY_CHECK(doctor::ParseCpuList(doctor::FormatCpuList(*cpus)) == cpus);
  }
  const nlohmann::json quoted = {
      {"format", 1},
      {"paths",
       {{"/dev/davinci0", {{"kind", "device"}, {"access", "rw"}}},
        {"/usr/local/Ascend/driver/version.info", {{"text", text}}},
        {"/etc/hccn.conf", {{"text", text}}},
        {"/etc/ld.so.conf.d/a.conf", {{"text", text}}},
        {"/proc/meminfo", {{"text", text}}},
        {"/proc/self/status", {{"text", text}}},
        {"/proc/irq/1/smp_affinity_list", {{"text", text}}},
        {"/sys/devices/system/node/node0/cpulist", {{"text", text}}},
        {"/sys/devices/system/node/node1/meminfo", {{"text", text}}},
        {"/sys/bus/pci/devices/a/vendor", {{"text", "0x19e5"}}},
        {"/sys/bus/pci/devices/a/class", {{"text", "0x120000"}}},
        {"/sys/bus/pci/devices/a/numa_node", {{"text", text}}},
        {"/sys/bus/pci/devices/a/msi_irqs/1", {{"kind", "file"}}},
        {"/etc/hccl_rootinfo.json", {{"text", text}}},
        {"/m/config.json", {{"text", text}}}}},
      {"variables",
       {{"ASCEND_RT_VISIBLE_DEVICES", text}, {"HCCL_EXEC_TIMEOUT", text}}},
      {"commands", {{"npu-smi info", {{"status", 0}, {"out", text}}}}}};
  judge(quoted.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  return 0;
}
