// SPDX-License-Identifier: Apache-2.0
#include "cannsim/config/profile.h"

#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace cannsim {
namespace {

using Json = nlohmann::json;

// Reads fields of one object and keeps the first complaint.
class Reader {
 public:
  Reader(const Json& root, std::string* error) : root_(root), error_(error) {}

  bool ok() const { return ok_; }

  std::string Text(const char* group, const char* field) {
    const Json* value = Find(group, field);
    if (value == nullptr) return "";
    if (!value->is_string() || value->get_ref<const std::string&>().empty()) {
      Complain(group, field, "must be a text");
      return "";
    }
    return value->get<std::string>();
  }

  double Number(const char* group, const char* field, double low, double high) {
    const Json* value = Find(group, field);
    if (value == nullptr) return low;
    if (!value->is_number()) {
      Complain(group, field, "must be a number");
      return low;
    }
    const double x = value->get<double>();
    if (!(x >= low && x <= high)) {
      Complain(group, field, fmt::format("must be in [{}, {}]", low, high));
      return low;
    }
    return x;
  }

  // 0 where the field is not there.
  double NumberIfAny(const char* group, const char* field, double high) {
    const auto object = root_.find(group);
    const bool is_there =
        object != root_.end() && object->is_object() && object->contains(field);
    return is_there ? Number(group, field, 0, high) : 0;
  }

  int Int(const char* group, const char* field, int low, int high) {
    return static_cast<int>(Number(group, field, low, high));
  }

  // At most 64 TiB, so that sums of a few stay far from overflow.
  size_t Bytes(const char* group, const char* field, double low = 0) {
    return static_cast<size_t>(Number(group, field, low, 0x1p46));
  }

  void Complain(const char* group, const char* field, const std::string& what) {
    if (ok_) *error_ = fmt::format("{}.{} {}", group, field, what);
    ok_ = false;
  }

 private:
  const Json* Find(const char* group, const char* field) {
    const auto object = root_.find(group);
    if (object != root_.end() && object->is_object()) {
      const auto value = object->find(field);
      if (value != object->end()) return &*value;
    }
    Complain(group, field, "is missing");
    return nullptr;
  }

  const Json& root_;
  std::string* error_;
  bool ok_ = true;
};

Generation GenerationFrom(Reader& reader) {
  const std::string text = reader.Text("soc", "generation");
  if (text == "310P") return Generation::k310P;
  if (text == "A3") return Generation::kA3;
  if (text == "A5") return Generation::kA5;
  if (text != "A2") {
    reader.Complain("soc", "generation", "must be 310P, A2, A3 or A5");
  }
  return Generation::kA2;
}

void ReadChip(Reader& reader, Profile* p) {
  p->generation = GenerationFrom(reader);
  p->short_name = reader.Text("soc", "short_name");
  p->npu_smi_name = reader.Text("soc", "npu_smi_name");
  p->npu_arch = reader.Int("soc", "npu_arch", 1, 99999);
  p->chips_per_card = reader.Int("soc", "chips_per_card", 1, 16);
  p->n_cube_cores = reader.Int("cores", "cube", 1, 4096);
  p->n_vector_cores = reader.Int("cores", "vector", 1, 4096);
  p->n_ai_cpu_cores = reader.Int("cores", "ai_cpu", 0, 4096);
}

void ReadMemory(Reader& reader, Profile* p) {
  p->has_hbm = reader.Text("memory", "kind") == "HBM";
  p->memory_bytes = reader.Bytes("memory", "bytes", 1 << 20);
  p->reserved_bytes = reader.Bytes("memory", "reserved_bytes");
  p->l2_bytes = reader.Bytes("memory", "l2_bytes");
  p->ub_bytes = reader.Bytes("memory", "ub_bytes");
  p->huge_page_bytes = reader.Bytes("memory", "huge_page_bytes", 4096);
  p->memory_bytes_per_s =
      reader.Number("memory", "bandwidth_bytes_per_s", 1, 1e18);
  p->fp16_flops = reader.Number("compute", "fp16_flops", 0, 1e21);
  p->address_alignment = reader.Bytes("allocation", "address_alignment", 1);
  p->size_rounding = reader.Bytes("allocation", "size_rounding", 1);
  p->extra_bytes = reader.Bytes("allocation", "extra_bytes");
  const size_t a = p->address_alignment;
  if (reader.ok() && ((a & (a - 1)) != 0 || a > 4096)) {
    reader.Complain("allocation", "address_alignment",
                    "must be a power of two up to 4096");
  }
  if (reader.ok() && (p->huge_page_bytes & 4095) != 0) {
    reader.Complain("memory", "huge_page_bytes", "must be a multiple of 4096");
  }
  if (reader.ok() && p->reserved_bytes >= p->memory_bytes) {
    reader.Complain("memory", "reserved_bytes", "leaves nothing");
  }
  if (reader.ok() && (p->size_rounding > 4096 || p->extra_bytes > 4096)) {
    reader.Complain("allocation", "size_rounding", "or extra_bytes over 4096");
  }
}

void ReadRest(Reader& reader, Profile* p) {
  p->n_events = reader.Int("limits", "events", 1, 1 << 24);
  p->n_streams = reader.Int("limits", "streams", 1, 1 << 24);
  p->launch_us = reader.Number("timing", "launch_us", 0, 1e9);
  p->copy_latency_us = reader.Number("timing", "copy_latency_us", 0, 1e9);
  p->copy_jitter_us =
      reader.Number("timing", "copy_jitter_us", 0, p->copy_latency_us);
  p->host_link_bytes_per_s =
      reader.Number("timing", "host_link_bytes_per_s", 1, 1e18);
  p->peer_link_bytes_per_s =
      reader.NumberIfAny("timing", "peer_link_bytes_per_s", 1e18);
  p->n_devices = reader.Int("defaults", "devices", 1, 64);
  p->driver_version = reader.Text("defaults", "driver_version");
}

}  // namespace

bool ParseProfile(std::string_view text, Profile* profile, std::string* error) {
  const Json root = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!root.is_object()) {
    *error = "not a JSON object";
    return false;
  }
  const auto schema = root.find("schema");
  if (schema == root.end() || *schema != 1) {
    *error = "schema must be 1";
    return false;
  }
  const auto name = root.find("name");
  if (name == root.end() || !name->is_string() || name->size() == 0) {
    *error = "name is missing";
    return false;
  }
  profile->name = name->get<std::string>();
  Reader reader(root, error);
  ReadChip(reader, profile);
  ReadMemory(reader, profile);
  ReadRest(reader, profile);
  return reader.ok();
}

bool LoadProfile(const std::string& name, const std::string& folder,
                 Profile* profile, std::string* error) {
  const bool is_file = name.find('/') != std::string::npos ||
                       name.find(".json") != std::string::npos;
  const std::string path =
      is_file ? name : fmt::format("{}/{}.json", folder, name);
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    *error = fmt::format("{}: no such profile", path);
    return false;
  }
  // A profile is 2 KiB; what does not end soon is something else.
  std::string text(size_t{1} << 20, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(in.gcount()));
  std::string why;
  if (ParseProfile(text, profile, &why)) return true;
  *error = fmt::format("{}: {}", path, why);
  return false;
}

}  // namespace cannsim
