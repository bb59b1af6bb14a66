// SPDX-License-Identifier: Apache-2.0
#include "text/bpe/tokenizer_file.h"

#include <utility>

#include "base/error_ids.h"
#include "text/bpe/tokenizer_sax.h"

namespace belay::text {
namespace {

using Json = nlohmann::json;

// A value as an error shows it.
std::string Show(const Json& value) {
  constexpr size_t kMaxShown = 80;
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > kMaxShown) text = text.substr(0, kMaxShown) + "...";
  return text;
}

class Reader {
 public:
  Reader(const Json& root, std::string_view where)
      : root_(root), where_(where) {}

  Status Read(TokenizerFile* file) const {
    if (!root_.is_object()) {
      return BadField("the whole", "an object", root_);
    }
    BELAY_RETURN_IF_ERROR(CheckAbsent(root_, "truncation", "truncation"));
    BELAY_RETURN_IF_ERROR(CheckAbsent(root_, "padding", "padding"));
    BELAY_RETURN_IF_ERROR(CheckNormalizer());
    BELAY_RETURN_IF_ERROR(ReadPreTokenizer(file));
    BELAY_RETURN_IF_ERROR(CheckDecoder());
    BELAY_RETURN_IF_ERROR(ReadModel(file));
    return ReadAddedTokens(file);
  }

 private:
  Status BadField(const std::string& field, std::string expected,
                  const Json& got) const {
    return MakeError(kTokBadField, {.where = std::string(where_) + ": " + field,
                                    .what = "",
                                    .expected = std::move(expected),
                                    .got = Show(got)});
  }

  Status Unsupported(const std::string& field, std::string expected,
                     const Json& got) const {
    return MakeError(kTokUnsupported,
                     {.where = std::string(where_) + ": " + field,
                      .what = "",
                      .expected = std::move(expected),
                      .got = Show(got)});
  }

  // The value of a key, null when it is not there.
  static const Json& At(const Json& object, const char* key) {
    static const Json kNull;
    if (!object.is_object()) return kNull;
    const auto it = object.find(key);
    return it == object.end() ? kNull : *it;
  }

  Status CheckAbsent(const Json& object, const char* key,
                     const std::string& field) const {
    const Json& value = At(object, key);
    const bool is_empty =
        value.is_string() && value.get_ref<const std::string&>().empty();
    if (value.is_null() || is_empty) return absl::OkStatus();
    return Unsupported(field, "null", value);
  }

  StatusOr<bool> Flag(const Json& object, const char* key, bool otherwise,
                      const std::string& field) const {
    const Json& value = At(object, key);
    if (value.is_null()) return otherwise;
    if (!value.is_boolean()) {
      return BadField(field + "." + key, "true or false", value);
    }
    return value.get<bool>();
  }

  Status RequireFlag(const Json& object, const char* key, bool otherwise,
                     bool wanted, const std::string& field) const {
    BELAY_ASSIGN_OR_RETURN(const bool flag,
                           Flag(object, key, otherwise, field));
    if (flag == wanted) return absl::OkStatus();
    return Unsupported(field + "." + key, wanted ? "true" : "false", flag);
  }

  Status CheckNormalizer() const {
    const Json& value = At(root_, "normalizer");
    if (value.is_null()) return absl::OkStatus();
    const Json& inner = At(value, "normalizers");
    if (At(value, "type") == "Sequence" && inner.is_array() && inner.empty()) {
      return absl::OkStatus();
    }
    return Unsupported("normalizer", "none", value);
  }

  Status CheckDecoder() const {
    const Json& value = At(root_, "decoder");
    if (At(value, "type") == "ByteLevel") return absl::OkStatus();
    return Unsupported("decoder", "type ByteLevel", value);
  }

  // Splits, then exactly one ByteLevel.
  Status ReadPreTokenizer(TokenizerFile* file) const {
    const Json& value = At(root_, "pre_tokenizer");
    if (At(value, "type") != "Sequence") {
      return ReadByteLevel(value, "pre_tokenizer");
    }
    const Json& steps = At(value, "pretokenizers");
    if (!steps.is_array() || steps.empty()) {
      return BadField("pre_tokenizer.pretokenizers", "a list", steps);
    }
    for (size_t i = 0; i < steps.size(); ++i) {
      const std::string field =
          "pre_tokenizer.pretokenizers[" + std::to_string(i) + "]";
      if (i + 1 == steps.size()) {
        BELAY_RETURN_IF_ERROR(ReadByteLevel(steps[i], field));
      } else {
        BELAY_RETURN_IF_ERROR(ReadSplit(steps[i], field, file));
      }
    }
    return absl::OkStatus();
  }

  Status ReadByteLevel(const Json& value, const std::string& field) const {
    if (At(value, "type") != "ByteLevel") {
      return Unsupported(field, "type ByteLevel as the last step", value);
    }
    BELAY_RETURN_IF_ERROR(
        RequireFlag(value, "add_prefix_space", true, false, field));
    return RequireFlag(value, "use_regex", true, false, field);
  }

  Status ReadSplit(const Json& value, const std::string& field,
                   TokenizerFile* file) const {
    if (At(value, "type") != "Split") {
      return Unsupported(field, "type Split before the last step", value);
    }
    if (At(value, "behavior") != "Isolated") {
      return Unsupported(field + ".behavior", "Isolated",
                         At(value, "behavior"));
    }
    BELAY_RETURN_IF_ERROR(RequireFlag(value, "invert", false, false, field));
    const Json& pattern = At(value, "pattern");
    const Json& regex = At(pattern, "Regex");
    if (!regex.is_string()) {
      return Unsupported(field + ".pattern", "Regex", pattern);
    }
    file->split_patterns.push_back(regex.get<std::string>());
    return absl::OkStatus();
  }

  Status ReadModel(TokenizerFile* file) const {
    const Json& model = At(root_, "model");
    if (!model.is_object()) return BadField("model", "an object", model);
    // Files of the first versions have no type.
    const Json& type = At(model, "type");
    if (!type.is_null() && type != "BPE") {
      return Unsupported("model.type", "BPE", type);
    }
    for (const char* key : {"dropout", "unk_token", "continuing_subword_prefix",
                            "end_of_word_suffix"}) {
      BELAY_RETURN_IF_ERROR(
          CheckAbsent(model, key, std::string("model.") + key));
    }
    BELAY_RETURN_IF_ERROR(
        RequireFlag(model, "byte_fallback", false, false, "model"));
    BELAY_ASSIGN_OR_RETURN(file->ignore_merges,
                           Flag(model, "ignore_merges", false, "model"));
    const Json& vocab = At(model, "vocab");
    if (!vocab.is_object()) return BadField("model.vocab", "an object", vocab);
    const Json& merges = At(model, "merges");
    if (!merges.is_array()) return BadField("model.merges", "a list", merges);
    return absl::OkStatus();
  }

  Status ReadAddedTokens(TokenizerFile* file) const {
    const Json& tokens = At(root_, "added_tokens");
    if (tokens.is_null()) return absl::OkStatus();
    if (!tokens.is_array()) return BadField("added_tokens", "a list", tokens);
    for (size_t i = 0; i < tokens.size(); ++i) {
      const std::string field = "added_tokens[" + std::to_string(i) + "]";
      BELAY_ASSIGN_OR_RETURN(AddedToken token,
                             ReadAddedToken(tokens[i], field));
      // The Rust tokenizer leaves tokens without text out, too.
      if (!token.content.empty())
        file->added_tokens.push_back(std::move(token));
    }
    return absl::OkStatus();
  }

  StatusOr<AddedToken> ReadAddedToken(const Json& value,
                                      const std::string& field) const {
    const Json& content = At(value, "content");
    if (!content.is_string()) {
      return BadField(field + ".content", "a text", content);
    }
    const Json& id = At(value, "id");
    if (!id.is_number_unsigned() || id.get<uint64_t>() > INT32_MAX) {
      return BadField(field + ".id", "an id", id);
    }
    AddedToken token{.id = id.get<int32_t>(),
                     .content = content.get<std::string>()};
    struct NamedFlag {
      const char* key;
      bool* flag;
    };
    for (const NamedFlag& named :
         {NamedFlag{"special", &token.special},
          NamedFlag{"lstrip", &token.lstrip},
          NamedFlag{"rstrip", &token.rstrip},
          NamedFlag{"single_word", &token.single_word},
          NamedFlag{"normalized", &token.normalized}}) {
      BELAY_ASSIGN_OR_RETURN(*named.flag, Flag(value, named.key, false, field));
    }
    return token;
  }

  const Json& root_;
  std::string_view where_;
};

}  // namespace

StatusOr<TokenizerFile> ParseTokenizerFile(std::string_view json,
                                           std::string_view where) {
  BELAY_ASSIGN_OR_RETURN(TokenizerJson read, ReadTokenizerJson(json, where));
  BELAY_RETURN_IF_ERROR(Reader(read.rest, where).Read(&read.lists));
  return std::move(read.lists);
}

}  // namespace belay::text
