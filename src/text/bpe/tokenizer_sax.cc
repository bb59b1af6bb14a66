// SPDX-License-Identifier: Apache-2.0
#include "text/bpe/tokenizer_sax.h"

#include <algorithm>
#include <utility>

#include "base/error_ids.h"

namespace belay::text {
namespace {

using Json = nlohmann::json;

// Deeper than any tokenizer; a DOM is destroyed recursively.
constexpr size_t kMaxDepth = 64;

// Handler of nlohmann's SAX interface: every callback returns false to stop.
class Handler {
 public:
  Handler(TokenizerJson* out, std::string_view where)
      : out_(out), where_(where) {}

  Status status() const { return status_; }

  bool null() { return Value(nullptr, "null"); }
  bool boolean(bool value) { return Value(value, "a boolean"); }
  bool number_integer(Json::number_integer_t value) {
    return Value(value, "a negative number");
  }
  bool number_unsigned(Json::number_unsigned_t value) {
    if (list_ != kVocab) return Value(value, "a number");
    // Beyond int32 it is out of range anyway; the range is checked later.
    out_->lists.piece_ids.push_back(
        static_cast<int64_t>(std::min<uint64_t>(value, INT64_MAX)));
    return true;
  }
  bool number_float(Json::number_float_t value, const std::string&) {
    return Value(value, "a fraction");
  }
  bool string(std::string& value) {
    if (list_ == kMerges) return MergeLine(value);
    if (list_ == kMergePair) return MergePart(value);
    return Value(value, "a string");
  }
  bool binary(Json::binary_t&) { return Wrong("binary data"); }

  bool start_object(size_t) {
    if (list_ != kNone) return Wrong("an object");
    if (IsModelKey("vocab")) list_ = kVocab;
    return Enter(Json::object());
  }
  bool key(std::string& name) {
    if (list_ == kVocab) {
      out_->lists.pieces.Add(name);
      return true;
    }
    key_ = name;
    if (stack_.back()->contains(name))
      return Wrong("the key " + name + " twice");
    return true;
  }
  bool end_object() {
    list_ = kNone;
    stack_.pop_back();
    return true;
  }
  bool start_array(size_t) {
    if (list_ == kMerges) {
      list_ = kMergePair;
      n_parts_ = 0;
      return true;
    }
    if (list_ != kNone) return Wrong("an array");
    if (IsModelKey("merges")) list_ = kMerges;
    return Enter(Json::array());
  }
  bool end_array() {
    if (list_ == kMergePair) {
      list_ = kMerges;
      return n_parts_ == 2 || Wrong(std::to_string(n_parts_) + " parts");
    }
    list_ = kNone;
    stack_.pop_back();
    return true;
  }

  bool parse_error(size_t position, const std::string&,
                   const Json::exception& error) {
    status_ = MakeError(
        kTokMalformed,
        {.where = std::string(where_) + ": byte " + std::to_string(position),
         .what = "",
         .expected = "",
         .got = error.what()});
    return false;
  }

 private:
  enum List { kNone, kVocab, kMerges, kMergePair };

  // Is the value to come that of model.<name>?
  bool IsModelKey(std::string_view name) const {
    return stack_.size() == 2 && in_model_ && key_ == name;
  }

  // Puts a value into the DOM, at the place that the keys lead to.
  Json* Put(Json value) {
    if (stack_.empty()) {
      out_->rest = std::move(value);
      return &out_->rest;
    }
    Json& parent = *stack_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    return &(parent[key_] = std::move(value));
  }

  bool Enter(Json container) {
    if (stack_.size() == kMaxDepth) return Wrong("JSON of too many levels");
    if (stack_.size() == 1) in_model_ = key_ == "model";
    stack_.push_back(Put(std::move(container)));
    return true;
  }

  template <typename T>
  bool Value(T&& value, const char* kind) {
    if (list_ != kNone) return Wrong(kind);
    Put(Json(std::forward<T>(value)));
    return true;
  }

  // "left right", the older spelling of a merge.
  bool MergeLine(const std::string& line) {
    const size_t space = line.find(' ');
    if (space == std::string::npos || space == 0 || space + 1 == line.size() ||
        line.find(' ', space + 1) != std::string::npos) {
      return Wrong("\"" + line + "\"");
    }
    out_->lists.merge_parts.Add(std::string_view(line).substr(0, space));
    out_->lists.merge_parts.Add(std::string_view(line).substr(space + 1));
    return true;
  }

  bool MergePart(const std::string& part) {
    ++n_parts_;
    out_->lists.merge_parts.Add(part);
    return true;
  }

  bool Wrong(std::string got) {
    ErrorFacts facts{.where = std::string(where_),
                     .what = "",
                     .expected = "",
                     .got = std::move(got)};
    const TokenizerFile& lists = out_->lists;
    if (list_ == kVocab) {
      facts.where += ": model.vocab";
      if (lists.pieces.size() > 0) {
        facts.what = std::string(lists.pieces[lists.pieces.size() - 1]);
      }
      facts.expected = "an id";
    } else if (list_ != kNone) {
      facts.where += ": model.merges[" +
                     std::to_string(lists.merge_parts.size() / 2) + "]";
      facts.expected = "two pieces";
    }
    status_ = MakeError(kTokBadField, std::move(facts));
    return false;
  }

  TokenizerJson* out_;
  std::string_view where_;
  Status status_;
  List list_ = kNone;
  bool in_model_ = false;
  int n_parts_ = 0;
  std::string key_;
  std::vector<Json*> stack_;
};

}  // namespace

StatusOr<TokenizerJson> ReadTokenizerJson(std::string_view json,
                                          std::string_view where) {
  TokenizerJson out;
  // What DeepSeek's file needs, so that nothing is copied while it grows.
  out.lists.pieces.Reserve(json.size() / 56, json.size() / 6);
  out.lists.merge_parts.Reserve(json.size() / 28, json.size() / 6);
  Handler handler(&out, where);
  if (!Json::sax_parse(json.data(), json.data() + json.size(), &handler)) {
    return handler.status();
  }
  return out;
}

}  // namespace belay::text
