// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/safetensors_header.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "base/error_ids.h"

namespace belay::checkpoint {
namespace {

using Json = nlohmann::json;

// Reads the header as a stream of events: no tree is built, duplicate names are
// seen, and nesting deeper than the format's is an error at once.
class HeaderHandler : public nlohmann::json_sax<Json> {
 public:
  StatusOr<Header> Take(bool parsed) {
    if (!status_.ok()) return status_;
    if (!parsed) return Malformed("", "not JSON");
    return std::move(header_);
  }

  bool start_object(std::size_t) override {
    if (place_ == Place::kBeforeRoot) {
      place_ = Place::kRoot;
      return true;
    }
    if (place_ != Place::kRootValue) return FailHere("an object");
    if (entry_.name == "__metadata__") {
      place_ = Place::kMetadata;
    } else {
      place_ = Place::kEntry;
      seen_ = Seen{};
    }
    return true;
  }

  bool key(string_t& text) override {
    if (place_ == Place::kRoot) {
      if (!names_.insert(text).second) {
        return Fail(
            MakeError(kCkptDuplicateTensor,
                      {text, "the name is twice in the header", "", ""}));
      }
      entry_ = HeaderEntry{};
      entry_.name = text;
      place_ = Place::kRootValue;
      return true;
    }
    key_ = text;
    if (place_ == Place::kMetadata) return true;
    return EntryKey();
  }

  bool end_object() override {
    if (place_ == Place::kEntry) {
      if (!seen_.dtype || !seen_.shape || !seen_.offsets) {
        return Fail(
            Malformed(entry_.name, "dtype, shape or data_offsets is missing"));
      }
      header_.entries.push_back(std::move(entry_));
    }
    place_ = place_ == Place::kRoot ? Place::kAfterRoot : Place::kRoot;
    return true;
  }

  bool start_array(std::size_t) override {
    if (place_ != Place::kShape && place_ != Place::kOffsets) {
      return FailHere("an array");
    }
    if (in_array_) return FailHere("an array in an array");
    in_array_ = true;
    n_numbers_ = 0;
    return true;
  }

  bool end_array() override {
    in_array_ = false;
    if (place_ == Place::kOffsets && n_numbers_ != 2) {
      return Fail(Malformed(entry_.name, "data_offsets are not two numbers"));
    }
    place_ = Place::kEntry;
    return true;
  }

  bool string(string_t& text) override {
    if (place_ == Place::kMetadata) {
      header_.metadata[key_] = text;
      return true;
    }
    if (place_ != Place::kDtype) return FailHere("a string");
    const std::optional<DType> dtype = DtypeFromName(text);
    if (!dtype.has_value()) {
      return Fail(MakeError(kCkptHeaderMalformed,
                            {entry_.name, "unknown dtype", "", text}));
    }
    entry_.dtype = *dtype;
    place_ = Place::kEntry;
    return true;
  }

  bool number_unsigned(number_unsigned_t value) override {
    if (!in_array_) return FailHere("a number");
    return place_ == Place::kShape ? Extent(value) : Offset(value);
  }

  bool number_integer(number_integer_t value) override {
    return FailHere(std::to_string(value));
  }
  bool number_float(number_float_t, const string_t& text) override {
    return FailHere(text);
  }
  bool null() override { return FailHere("null"); }
  bool boolean(bool value) override {
    return FailHere(value ? "true" : "false");
  }
  bool binary(binary_t&) override { return FailHere("binary"); }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    return Fail(Malformed("byte " + std::to_string(8 + position), "not JSON"));
  }

 private:
  enum class Place {
    kBeforeRoot,
    kRoot,       // between two names
    kRootValue,  // after a name
    kMetadata,
    kEntry,  // between two keys of a tensor
    kDtype,
    kShape,
    kOffsets,
    kAfterRoot,
  };
  struct Seen {
    bool dtype = false;
    bool shape = false;
    bool offsets = false;
  };

  static Status Malformed(std::string where, std::string what) {
    return MakeError(kCkptHeaderMalformed,
                     {std::move(where), std::move(what), "", ""});
  }
  bool Fail(Status status) {
    if (status_.ok()) status_ = std::move(status);
    return false;
  }
  bool FailHere(std::string got) {
    return Fail(MakeError(
        kCkptHeaderMalformed,
        {entry_.name, "a value of the wrong kind", "", std::move(got)}));
  }

  bool EntryKey() {
    bool* seen = nullptr;
    if (key_ == "dtype") {
      seen = &seen_.dtype;
      place_ = Place::kDtype;
    } else if (key_ == "shape") {
      seen = &seen_.shape;
      place_ = Place::kShape;
    } else if (key_ == "data_offsets") {
      seen = &seen_.offsets;
      place_ = Place::kOffsets;
    } else {
      return Fail(Malformed(entry_.name, "unknown key " + key_));
    }
    if (*seen) return Fail(Malformed(entry_.name, "key twice: " + key_));
    *seen = true;
    return true;
  }

  bool Extent(uint64_t value) {
    if (entry_.shape.rank() == Shape::kMaxRank) {
      return Fail(Malformed(entry_.name, "more than 5 dimensions"));
    }
    if (value > static_cast<uint64_t>(INT64_MAX)) {
      return FailHere(std::to_string(value));
    }
    entry_.shape.push_back(static_cast<int64_t>(value));
    return true;
  }

  bool Offset(uint64_t value) {
    if (n_numbers_ == 0) entry_.begin = value;
    if (n_numbers_ == 1) entry_.end = value;
    ++n_numbers_;
    if (n_numbers_ <= 2) return true;
    return Fail(Malformed(entry_.name, "data_offsets are not two numbers"));
  }

  Header header_;
  Status status_;
  Place place_ = Place::kBeforeRoot;
  HeaderEntry entry_;
  Seen seen_;
  std::string key_;
  bool in_array_ = false;
  int n_numbers_ = 0;
  std::unordered_set<std::string> names_;
};

// Bytes that dtype and shape ask for, or nothing when any product of extents
// (of a row, say, beside an extent of 0) would not fit 63 bits.
std::optional<uint64_t> BytesOf(const HeaderEntry& entry) {
  auto bytes = static_cast<int64_t>(DtypeBytes(entry.dtype));
  bool empty = false;
  for (int i = 0; i < entry.shape.rank(); ++i) {
    const int64_t extent = entry.shape[i];
    empty = empty || extent == 0;
    if (extent != 0 && __builtin_mul_overflow(bytes, extent, &bytes)) {
      return std::nullopt;
    }
  }
  return empty ? 0 : static_cast<uint64_t>(bytes);
}

Status BadOffsets(const HeaderEntry& entry, std::string what,
                  std::string expected, std::string got) {
  return MakeError(kCkptBadOffsets, {entry.name, std::move(what),
                                     std::move(expected), std::move(got)});
}

Status CheckEntry(const HeaderEntry& entry) {
  if (entry.end < entry.begin) {
    return BadOffsets(entry, "data ends before it begins",
                      ">= " + std::to_string(entry.begin),
                      std::to_string(entry.end));
  }
  const std::string shape =
      std::string(DtypeName(entry.dtype)) + " " + entry.shape.ToString();
  const std::optional<uint64_t> bytes = BytesOf(entry);
  if (!bytes.has_value()) {
    return BadOffsets(entry, "more elements than 64 bits count", "", shape);
  }
  if (entry.end - entry.begin != *bytes) {
    return BadOffsets(entry, "data_offsets do not fit " + shape,
                      std::to_string(*bytes) + " bytes",
                      std::to_string(entry.end - entry.begin));
  }
  return absl::OkStatus();
}

// Sorted by offset, every tensor begins where the one before it ends.
Status CheckNeighbours(const std::vector<HeaderEntry>& entries) {
  uint64_t expected = 0;
  for (const HeaderEntry& entry : entries) {
    if (entry.begin != expected) {
      return BadOffsets(entry,
                        entry.begin < expected ? "overlaps the tensor before it"
                                               : "a hole before this tensor",
                        "offset " + std::to_string(expected),
                        std::to_string(entry.begin));
    }
    expected = entry.end;
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<Header> ParseHeader(std::string_view json) {
  HeaderHandler handler;
  const bool parsed = Json::sax_parse(json.begin(), json.end(), &handler);
  BELAY_ASSIGN_OR_RETURN(Header header, handler.Take(parsed));
  for (const HeaderEntry& entry : header.entries) {
    BELAY_RETURN_IF_ERROR(CheckEntry(entry));
  }
  std::sort(header.entries.begin(), header.entries.end(),
            [](const HeaderEntry& a, const HeaderEntry& b) {
              return std::tie(a.begin, a.end, a.name) <
                     std::tie(b.begin, b.end, b.name);
            });
  BELAY_RETURN_IF_ERROR(CheckNeighbours(header.entries));
  return header;
}

}  // namespace belay::checkpoint
