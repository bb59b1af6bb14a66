// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer.h"

#include <filesystem>
#include <utility>

#include "base/error_ids.h"
#include "base/file.h"
#include "text/bpe/added_tokens.h"
#include "text/bpe/bpe.h"
#include "text/bpe/bpe_scratch.h"
#include "text/bpe/tokenizer_file.h"
#include "text/bpe/vocabulary.h"
#include "text/split/pretokenizer.h"
#include "text/split/unicode.h"

namespace belay::text {
namespace {

// Positions inside a piece are 32-bit.
constexpr size_t kMaxTextBytes = (size_t{1} << 31) - 1;
// Far above the largest published tokenizer (about 30 MB).
constexpr size_t kMaxFileBytes = size_t{1} << 28;

Status Inconsistent(std::string where, std::string what, std::string expected,
                    std::string got) {
  return MakeError(kTokInconsistent, {.where = std::move(where),
                                      .what = std::move(what),
                                      .expected = std::move(expected),
                                      .got = std::move(got)});
}

Status FillVocabulary(const TokenizerFile& file, std::string_view where,
                      Vocabulary* vocabulary) {
  const std::string at = std::string(where) + ": model.vocab";
  const auto check_id = [&](int64_t id, std::string_view piece) {
    if (id <= Vocabulary::kMaxId) return Status();
    return Inconsistent(
        at, std::string(piece),
        "an id of at most " + std::to_string(Vocabulary::kMaxId),
        std::to_string(id));
  };
  vocabulary->Reserve(file.pieces.size() + file.added_tokens.size(),
                      file.pieces.n_bytes());
  for (size_t i = 0; i < file.pieces.size(); ++i) {
    BELAY_RETURN_IF_ERROR(check_id(file.piece_ids[i], file.pieces[i]));
    const auto id = static_cast<int32_t>(file.piece_ids[i]);
    if (!vocabulary->Add(file.pieces[i], id)) {
      return Inconsistent(at, std::string(file.pieces[i]),
                          "every piece and every id once",
                          "a second one of id " + std::to_string(id));
    }
  }
  std::vector<bool> added(vocabulary->size());
  for (const AddedToken& token : file.added_tokens) {
    BELAY_RETURN_IF_ERROR(check_id(token.id, token.content));
    if (static_cast<size_t>(token.id) >= added.size()) {
      added.resize(token.id + 1);
    }
    if (added[token.id] || !vocabulary->AddContent(token.content, token.id)) {
      return Inconsistent(std::string(where) + ": added_tokens", token.content,
                          "an id and a text of its own",
                          "id " + std::to_string(token.id));
    }
    added[token.id] = true;
  }
  return absl::OkStatus();
}

StatusOr<std::vector<Bpe::Merge>> ResolveMerges(const TokenizerFile& file,
                                                const Vocabulary& vocabulary,
                                                std::string_view where) {
  std::vector<Bpe::Merge> merges;
  merges.reserve(file.merge_parts.size() / 2);
  for (size_t i = 0; i + 1 < file.merge_parts.size(); i += 2) {
    const std::string_view parts[2] = {file.merge_parts[i],
                                       file.merge_parts[i + 1]};
    int32_t ids[2];
    for (int side = 0; side < 2; ++side) {
      ids[side] = vocabulary.IdOfPiece(parts[side]);
      if (vocabulary.KindOf(ids[side]) == Vocabulary::kByteLevel) continue;
      return Inconsistent(
          std::string(where) + ": model.merges[" + std::to_string(i / 2) + "]",
          std::string(parts[side]), "a byte-level piece of the vocabulary",
          "no such entry");
    }
    merges.push_back({ids[0], ids[1]});
  }
  return merges;
}

}  // namespace

struct Tokenizer::Impl {
  Vocabulary vocabulary;
  AddedTokens added;
  std::vector<bool> special;  // by id
  std::unique_ptr<const PreTokenizer> pre_tokenizer;
  std::optional<Bpe> bpe;  // points to `vocabulary`
};

Tokenizer::Tokenizer(std::unique_ptr<const Impl> impl)
    : impl_(std::move(impl)) {}

Tokenizer::~Tokenizer() = default;

StatusOr<std::shared_ptr<const Tokenizer>> Tokenizer::Open(
    const std::string& path) {
  std::error_code ignored;
  const bool is_folder = std::filesystem::is_directory(path, ignored);
  const std::string file =
      is_folder ? (std::filesystem::path(path) / "tokenizer.json").string()
                : path;
  BELAY_ASSIGN_OR_RETURN(const std::string json, ReadFile(file, kMaxFileBytes));
  return FromJson(json, file);
}

StatusOr<std::shared_ptr<const Tokenizer>> Tokenizer::FromJson(
    std::string_view json, std::string_view where) {
  BELAY_ASSIGN_OR_RETURN(TokenizerFile file, ParseTokenizerFile(json, where));
  return Make(std::move(file), where);
}

StatusOr<std::shared_ptr<const Tokenizer>> Tokenizer::FromLists(
    TokenizerLists lists, std::string_view where) {
  TokenizerFile file;
  for (const TokenizerLists::Piece& piece : lists.pieces) {
    file.pieces.Add(piece.text);
    file.piece_ids.push_back(piece.id);
  }
  for (const TokenizerLists::Merge& merge : lists.merges) {
    file.merge_parts.Add(merge.left);
    file.merge_parts.Add(merge.right);
  }
  file.added_tokens = std::move(lists.added_tokens);
  file.split_patterns = DeepSeekPatterns();
  return Make(std::move(file), where);
}

StatusOr<std::shared_ptr<const Tokenizer>> Tokenizer::Make(
    TokenizerFile file, std::string_view where) {
  auto impl = std::make_unique<Impl>();
  BELAY_RETURN_IF_ERROR(FillVocabulary(file, where, &impl->vocabulary));
  BELAY_ASSIGN_OR_RETURN(const std::vector<Bpe::Merge> merges,
                         ResolveMerges(file, impl->vocabulary, where));
  BELAY_ASSIGN_OR_RETURN(impl->bpe, Bpe::Create(&impl->vocabulary, merges,
                                                file.ignore_merges, where));
  BELAY_ASSIGN_OR_RETURN(impl->pre_tokenizer,
                         MakePreTokenizer(file.split_patterns, where));
  impl->special.resize(impl->vocabulary.size());
  for (const AddedToken& token : file.added_tokens) {
    impl->special[token.id] = token.special;
  }
  impl->added = AddedTokens(std::move(file.added_tokens));
  return std::shared_ptr<const Tokenizer>(new Tokenizer(std::move(impl)));
}

StatusOr<std::vector<int32_t>> Tokenizer::Encode(std::string_view text,
                                                 EncodeOptions options) const {
  std::string repaired;
  if (!IsValidUtf8(text)) {
    repaired = ReplaceInvalidUtf8(text);
    text = repaired;
  }
  if (text.size() > kMaxTextBytes) {
    return MakeError(kTokTextTooLong,
                     {.where = "",
                      .what = "",
                      .expected = std::to_string(kMaxTextBytes),
                      .got = std::to_string(text.size())});
  }
  std::vector<int32_t> ids;
  ids.reserve(text.size() / 4 + 1);
  std::vector<size_t> ends;
  Bpe::Scratch scratch;
  for (const TextPart& part : impl_->added.Split(text, options.parse_special)) {
    if (part.id >= 0) {
      ids.push_back(part.id);
      continue;
    }
    BELAY_RETURN_IF_ERROR(impl_->pre_tokenizer->Split(part.text, &ends));
    size_t start = 0;
    for (const size_t end : ends) {
      impl_->bpe->Encode(part.text.substr(start, end - start), &scratch, &ids);
      start = end;
    }
  }
  return ids;
}

std::string Tokenizer::Decode(std::span<const int32_t> ids,
                              DecodeOptions options) const {
  std::string bytes;
  for (const int32_t id : ids) {
    if (options.skip_special && IsSpecial(id)) continue;
    bytes.append(BytesOf(id));
  }
  return IsValidUtf8(bytes) ? bytes : ReplaceInvalidUtf8(bytes);
}

bool Tokenizer::Contains(int32_t id) const {
  return impl_->vocabulary.KindOf(id) != Vocabulary::kUnused;
}

bool Tokenizer::IsSpecial(int32_t id) const {
  return Contains(id) && impl_->special[id];
}

std::string_view Tokenizer::BytesOf(int32_t id) const {
  return impl_->vocabulary.BytesOf(id);
}

std::optional<std::string> Tokenizer::PieceOf(int32_t id) const {
  if (!Contains(id)) return std::nullopt;
  return impl_->vocabulary.PieceOf(id);
}

std::optional<int32_t> Tokenizer::IdOf(std::string_view piece) const {
  const int32_t id = impl_->vocabulary.IdOfPiece(piece);
  if (id < 0) return std::nullopt;
  return id;
}

int32_t Tokenizer::vocab_size() const { return impl_->vocabulary.size(); }

std::span<const AddedToken> Tokenizer::added_tokens() const {
  return impl_->added.tokens();
}

}  // namespace belay::text
