// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/gguf/file.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <fstream>
#include <limits>
#include <utility>

#include "base/error_ids.h"

namespace belay::checkpoint::gguf {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::string_view kMagic = "GGUF";
constexpr uint64_t kDefaultAlignment = 32;
constexpr uint64_t kMaxAlignment = uint64_t{1} << 20;
constexpr uint32_t kMaxDims = 4;

// Types of metadata values, by their number in the file.
enum ValueType : uint32_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kText,
  kArray,
  kU64,
  kI64,
  kF64,
};

// Bytes of a value at least: of a text, its length.
uint64_t ValueBytes(uint32_t type) {
  switch (type) {
    case kU8:
    case kI8:
    case kBool:
      return 1;
    case kU16:
    case kI16:
      return 2;
    case kU32:
    case kI32:
    case kF32:
      return 4;
    default:
      return 8;
  }
}

// Reads the header front to back. The first failure stays; afterwards every
// read gives zero, so that callers check once a step.
class Reader {
 public:
  Reader(std::span<const std::byte> bytes, std::string_view where)
      : bytes_(bytes), where_(where) {}

  template <typename T>
  T Number() {
    T value{};
    if (Has(sizeof(T))) {
      std::memcpy(&value, bytes_.data() + at_, sizeof(T));
      at_ += sizeof(T);
    }
    return value;
  }

  std::string_view Text() {
    const uint64_t n = Number<uint64_t>();
    if (!Has(n)) return {};
    const auto* const p = reinterpret_cast<const char*>(bytes_.data() + at_);
    at_ += n;
    return {p, static_cast<size_t>(n)};
  }

  Value ReadValue() {
    const uint32_t type = Number<uint32_t>();
    return type == kArray ? ReadArray() : ReadScalar(type);
  }

  bool ok() const { return status_.ok(); }
  const Status& status() const { return status_; }
  uint64_t at() const { return at_; }
  uint64_t left() const { return bytes_.size() - at_; }

  void Fail(std::string what, std::string expected, std::string got) {
    if (!ok()) return;
    status_ = MakeError(kGgufMalformed,
                        {std::string(where_) + ": byte " + std::to_string(at_),
                         std::move(what), std::move(expected), std::move(got)});
  }

 private:
  bool Has(uint64_t n) {
    if (!ok()) return false;
    if (n <= left()) return true;
    Fail("the header is cut off", std::to_string(n) + " bytes",
         std::to_string(left()));
    return false;
  }

  Value ReadScalar(uint32_t type) {
    switch (type) {
      case kU8:
        return uint64_t{Number<uint8_t>()};
      case kI8:
        return int64_t{Number<int8_t>()};
      case kU16:
        return uint64_t{Number<uint16_t>()};
      case kI16:
        return int64_t{Number<int16_t>()};
      case kU32:
        return uint64_t{Number<uint32_t>()};
      case kI32:
        return int64_t{Number<int32_t>()};
      case kF32:
        return double{Number<float>()};
      case kBool:
        return ReadBool();
      case kText:
        return Text();
      case kU64:
        return Number<uint64_t>();
      case kI64:
        return Number<int64_t>();
      case kF64:
        return Number<double>();
      default:
        Fail("type of a value", "0 .. 12", std::to_string(type));
        return false;
    }
  }

  bool ReadBool() {
    const auto value = Number<uint8_t>();
    if (value > 1) Fail("a boolean", "0 or 1", std::to_string(value));
    return value != 0;
  }

  Value ReadArray() {
    const uint32_t type = Number<uint32_t>();
    const uint64_t n = Number<uint64_t>();
    if (type == kArray || type > kF64) {
      Fail("type of an array's elements", "0 .. 8 or 10 .. 12",
           std::to_string(type));
      return false;
    }
    // Before anything is reserved: the file must be able to hold it.
    if (n > left() / ValueBytes(type)) {
      Fail("an array longer than the file", "", std::to_string(n));
      return false;
    }
    if (type == kText) {
      std::vector<std::string_view> texts(static_cast<size_t>(n));
      for (auto& text : texts) text = Text();
      return texts;
    }
    if (type == kF32 || type == kF64) {
      std::vector<double> numbers(static_cast<size_t>(n));
      for (double& v : numbers) v = std::get<double>(ReadScalar(type));
      return numbers;
    }
    std::vector<int64_t> ints(static_cast<size_t>(n));
    for (int64_t& v : ints) v = AsInt(ReadScalar(type));
    return ints;
  }

  int64_t AsInt(const Value& value) {
    if (const auto* u = std::get_if<uint64_t>(&value)) {
      if (*u > std::numeric_limits<int64_t>::max()) {
        Fail("an integer beyond 63 bits", "", std::to_string(*u));
      }
      return static_cast<int64_t>(*u);
    }
    if (const auto* b = std::get_if<bool>(&value)) return *b ? 1 : 0;
    return std::get<int64_t>(value);
  }

  std::span<const std::byte> bytes_;
  std::string_view where_;
  uint64_t at_ = 0;
  Status status_;
};

// Name, dimensions, type and offset from the start of the data; `bytes` is set
// when the type is one that we read.
TensorInfo ReadTensorInfo(Reader& reader) {
  TensorInfo info;
  info.name = reader.Text();
  const uint32_t n_dims = reader.Number<uint32_t>();
  if (n_dims < 1 || n_dims > kMaxDims) {
    reader.Fail("dimensions of " + std::string(info.name), "1 .. 4",
                std::to_string(n_dims));
    return info;
  }
  std::array<uint64_t, kMaxDims> dims{};
  uint64_t n = 1;
  for (uint32_t i = 0; i < n_dims; ++i) {
    dims[i] = reader.Number<uint64_t>();
    // Far below overflow in bytes too.
    if (dims[i] < 1 || dims[i] > (uint64_t{1} << 56) / n) {
      reader.Fail("a dimension of " + std::string(info.name), ">= 1",
                  std::to_string(dims[i]));
      return info;
    }
    n *= dims[i];
  }
  for (uint32_t i = n_dims; i-- > 0;) {
    info.shape.push_back(static_cast<int64_t>(dims[i]));
  }
  info.type = reader.Number<uint32_t>();
  info.offset = reader.Number<uint64_t>();
  const auto type = FindType(info.type);
  if (!type.has_value()) return info;
  const auto block = static_cast<uint64_t>(BlockValues(type->format));
  if (dims[0] % block != 0) {
    reader.Fail("row length of " + std::string(info.name),
                "a multiple of " + std::to_string(block),
                std::to_string(dims[0]));
  }
  info.bytes = type->bytes(n);
  return info;
}

// Only the first cause: a file that was cut off, or offsets that are wrong.
Status PlaceTensors(std::span<const std::byte> bytes, const std::string& where,
                    uint64_t data_begin, uint64_t alignment,
                    std::vector<TensorInfo>& tensors) {
  const auto bad = [&](const TensorInfo& t, const char* what,
                       std::string expected) {
    return MakeError(kCkptBadOffsets,
                     {where + ": " + std::string(t.name), what,
                      std::move(expected), std::to_string(t.offset)});
  };
  for (TensorInfo& t : tensors) {
    if (t.offset % alignment != 0) {
      return bad(t, "offset", "a multiple of " + std::to_string(alignment));
    }
    const uint64_t n_data =
        data_begin < bytes.size() ? bytes.size() - data_begin : 0;
    if (t.offset > n_data || t.bytes > n_data - t.offset) {
      return MakeError(
          kCkptTruncated,
          {where + ": " + std::string(t.name), "",
           t.offset > std::numeric_limits<uint64_t>::max() / 2
               ? "an offset inside the file"
               : std::to_string(data_begin + t.offset + t.bytes) + " bytes",
           std::to_string(bytes.size())});
    }
    t.offset += data_begin;
    if (t.bytes > 0) t.data = bytes.data() + t.offset;
  }
  std::vector<const TensorInfo*> by_offset;
  by_offset.reserve(tensors.size());
  for (const TensorInfo& t : tensors) by_offset.push_back(&t);
  std::sort(by_offset.begin(), by_offset.end(),
            [](const TensorInfo* a, const TensorInfo* b) {
              return a->offset < b->offset;
            });
  for (size_t i = 1; i < by_offset.size(); ++i) {
    const TensorInfo& before = *by_offset[i - 1];
    if (by_offset[i]->offset < before.offset + before.bytes) {
      return bad(*by_offset[i], "the tensor overlaps another",
                 ">= " + std::to_string(before.offset + before.bytes));
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::optional<int64_t> Metadata::Int(std::string_view key) const {
  const Value* const value = Find(key);
  if (value == nullptr) return std::nullopt;
  if (const auto* i = std::get_if<int64_t>(value)) return *i;
  const auto* const u = std::get_if<uint64_t>(value);
  if (u == nullptr || *u > std::numeric_limits<int64_t>::max()) {
    return std::nullopt;
  }
  return static_cast<int64_t>(*u);
}

std::optional<double> Metadata::Number(std::string_view key) const {
  const Value* const value = Find(key);
  if (value == nullptr) return std::nullopt;
  if (const auto* d = std::get_if<double>(value)) return *d;
  const auto i = Int(key);
  if (!i.has_value()) return std::nullopt;
  return static_cast<double>(*i);
}

std::optional<bool> Metadata::Bool(std::string_view key) const {
  const Value* const value = Find(key);
  if (value == nullptr) return std::nullopt;
  const auto* const b = std::get_if<bool>(value);
  return b == nullptr ? std::nullopt : std::optional(*b);
}

std::optional<std::string_view> Metadata::Text(std::string_view key) const {
  const Value* const value = Find(key);
  if (value == nullptr) return std::nullopt;
  const auto* const text = std::get_if<std::string_view>(value);
  return text == nullptr ? std::nullopt : std::optional(*text);
}

StatusOr<std::unique_ptr<GgufFile>> GgufFile::Open(const std::string& path) {
  std::unique_ptr<GgufFile> file(new GgufFile);
  BELAY_ASSIGN_OR_RETURN(file->mapping_, MappedFile::Open(path));
  file->path_ = path;
  file->bytes_ = file->mapping_->bytes();
  BELAY_RETURN_IF_ERROR(file->Parse());
  return file;
}

StatusOr<std::unique_ptr<GgufFile>> GgufFile::FromBytes(
    std::span<const std::byte> bytes, std::string where) {
  std::unique_ptr<GgufFile> file(new GgufFile);
  file->path_ = std::move(where);
  file->bytes_ = bytes;
  BELAY_RETURN_IF_ERROR(file->Parse());
  return file;
}

Status GgufFile::Parse() {
  if (bytes_.size() < kMagic.size() ||
      std::memcmp(bytes_.data(), kMagic.data(), kMagic.size()) != 0) {
    return MakeError(kGgufNotGguf, {path_, "", "GGUF as the first bytes", ""});
  }
  Reader reader(bytes_, path_);
  (void)reader.Number<uint32_t>();
  version_ = reader.Number<uint32_t>();
  if (version_ != 2 && version_ != 3) {
    const bool swapped = (version_ & 0xffffu) == 0;
    return MakeError(
        kGgufNotGguf,
        {path_, swapped ? "version; a big-endian file?" : "version", "2 or 3",
         std::to_string(version_)});
  }
  const uint64_t n_tensors = reader.Number<uint64_t>();
  const uint64_t n_values = reader.Number<uint64_t>();
  for (uint64_t i = 0; i < n_values && reader.ok(); ++i) {
    const std::string_view key = reader.Text();
    Value value = reader.ReadValue();
    if (!reader.ok()) break;
    if (key.empty()) reader.Fail("an empty key", "", "");
    if (!metadata_.Add(key, std::move(value))) {
      return MakeError(kCkptDuplicateTensor, {path_ + ": " + std::string(key),
                                              "metadata key", "", ""});
    }
  }
  std::unordered_map<std::string_view, bool> seen;
  for (uint64_t i = 0; i < n_tensors && reader.ok(); ++i) {
    const TensorInfo info = ReadTensorInfo(reader);
    if (!reader.ok()) break;
    if (!seen.emplace(info.name, true).second) {
      return MakeError(kCkptDuplicateTensor,
                       {path_ + ": " + std::string(info.name), "", "", ""});
    }
    tensors_.push_back(info);
  }
  BELAY_RETURN_IF_ERROR(reader.status());
  uint64_t alignment = kDefaultAlignment;
  if (metadata_.Find("general.alignment") != nullptr) {
    const auto given = metadata_.Int("general.alignment");
    if (!given.has_value() || *given < 8 || *given % 8 != 0 ||
        static_cast<uint64_t>(*given) > kMaxAlignment) {
      return MakeError(kGgufMalformed,
                       {path_ + ": general.alignment", "",
                        "a multiple of 8 of at most 1 MiB",
                        given.has_value() ? std::to_string(*given) : ""});
    }
    alignment = static_cast<uint64_t>(*given);
  }
  const uint64_t data_begin =
      (reader.at() + alignment - 1) / alignment * alignment;
  return PlaceTensors(bytes_, path_, data_begin, alignment, tensors_);
}

StatusOr<StoredView> ViewOf(const TensorInfo& tensor) {
  const auto type = FindType(tensor.type);
  if (!type.has_value()) {
    return MakeError(kGgufUnsupportedType,
                     {std::string(tensor.name), "",
                      "F32, F16, BF16, Q8_0, MXFP4, Q2_K .. Q6_K or I32",
                      TypeName(tensor.type)});
  }
  if (type->format == BlockFormat::kNone) {
    return StoredView(ConstTensorView(tensor.data, type->dtype, tensor.shape));
  }
  const int64_t n_cols = tensor.shape[tensor.shape.rank() - 1];
  const int64_t n_rows = tensor.shape.n_elements() / n_cols;
  const auto row_bytes =
      static_cast<int64_t>(type->bytes(static_cast<uint64_t>(n_cols)));
  return StoredView(
      ConstTensorView(tensor.data, DType::kU8, {n_rows, row_bytes}),
      type->format);
}

bool LooksLikeGguf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  char magic[4] = {};
  file.read(magic, sizeof(magic));
  return file && std::string_view(magic, sizeof(magic)) == kMagic;
}

}  // namespace belay::checkpoint::gguf
