// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <limits>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/error_ids.h"
#include "text/split/pretokenizer.h"
#include "text/split/regex_translate.h"

namespace belay::text {
namespace {

struct CodeDeleter {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};
struct MatchDeleter {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};
struct CompileContextDeleter {
  void operator()(pcre2_compile_context* context) const {
    pcre2_compile_context_free(context);
  }
};
using Code = std::unique_ptr<pcre2_code, CodeDeleter>;
using MatchData = std::unique_ptr<pcre2_match_data, MatchDeleter>;
using CompileContext =
    std::unique_ptr<pcre2_compile_context, CompileContextDeleter>;

std::string ErrorText(int error) {
  PCRE2_UCHAR buffer[160] = {};
  pcre2_get_error_message(error, buffer, sizeof(buffer));
  return reinterpret_cast<const char*>(buffer);
}

// One "Split" step.
struct Step {
  std::string pattern;  // as given, for messages
  Code code;
};

StatusOr<Step> Compile(const std::string& pattern, std::string_view where) {
  BELAY_ASSIGN_OR_RETURN(const std::string translated,
                         TranslateRegex(pattern, where));
  const auto refuse = [&](std::string got) {
    return MakeError(kTokBadPattern, {.where = std::string(where),
                                      .what = pattern,
                                      .expected = "a usable pattern",
                                      .got = std::move(got)});
  };
  const CompileContext context(pcre2_compile_context_create(nullptr));
  if (context == nullptr) return refuse("out of memory");
  // "." stops at \n alone, whatever PCRE2 was built for.
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int error = 0;
  PCRE2_SIZE offset = 0;
  Code code(pcre2_compile(
      reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
      PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C, &error, &offset, context.get()));
  if (code == nullptr) return refuse(ErrorText(error));
  uint32_t matches_empty = 0;
  pcre2_pattern_info(code.get(), PCRE2_INFO_MATCHEMPTY, &matches_empty);
  if (matches_empty != 0) return refuse("it can match nothing");
  // Where there is no JIT (a processor without, a hardened system), the
  // interpreter does the same, only slower.
  pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);
  return Step{pattern, std::move(code)};
}

// pcre2_match, with the interpreter behind the JIT compiler's small stack.
int Match(const Step& step, std::string_view piece, size_t at,
          pcre2_match_data* data) {
  const auto run = [&](uint32_t options) {
    return pcre2_match(step.code.get(),
                       reinterpret_cast<PCRE2_SPTR>(piece.data()), piece.size(),
                       at, PCRE2_NO_UTF_CHECK | options, data, nullptr);
  };
  const int result = run(0);
  return result == PCRE2_ERROR_JIT_STACKLIMIT ? run(PCRE2_NO_JIT) : result;
}

// Appends the ends of the matches and gaps of `piece`, which is at `offset`.
Status SplitPiece(const Step& step, std::string_view piece, size_t offset,
                  pcre2_match_data* data, std::vector<size_t>* ends) {
  size_t at = 0;
  while (at < piece.size()) {
    const int result = Match(step, piece, at, data);
    if (result == PCRE2_ERROR_NOMATCH) break;
    if (result < 0) {
      return MakeError(
          kTokMatchLimit,
          {.where = "byte " + std::to_string(offset + at) + " of the text",
           .what = step.pattern,
           .expected = "",
           .got = ErrorText(result)});
    }
    const PCRE2_SIZE* match = pcre2_get_ovector_pointer(data);
    if (match[0] > at) ends->push_back(offset + match[0]);
    ends->push_back(offset + match[1]);
    at = match[1];
  }
  if (at < piece.size()) ends->push_back(offset + piece.size());
  return absl::OkStatus();
}

class RegexPreTokenizer : public PreTokenizer {
 public:
  explicit RegexPreTokenizer(std::vector<Step> steps)
      : steps_(std::move(steps)) {}

  Status Split(std::string_view text,
               std::vector<size_t>* ends) const override {
    ends->clear();
    if (text.empty()) return absl::OkStatus();
    ends->push_back(text.size());
    std::vector<size_t> finer;
    for (const Step& step : steps_) {
      // Not kept between calls: match data serves one thread at a time.
      const MatchData data(
          pcre2_match_data_create_from_pattern(step.code.get(), nullptr));
      if (data == nullptr) {
        return MakeError(kSysOutOfMemory, {.where = "PCRE2 match data",
                                           .what = "",
                                           .expected = "",
                                           .got = ""});
      }
      finer.clear();
      size_t start = 0;
      for (const size_t end : *ends) {
        BELAY_RETURN_IF_ERROR(SplitPiece(step, text.substr(start, end - start),
                                         start, data.get(), &finer));
        start = end;
      }
      ends->swap(finer);
    }
    return absl::OkStatus();
  }

 private:
  std::vector<Step> steps_;
};

}  // namespace

StatusOr<std::unique_ptr<const PreTokenizer>> MakeRegexPreTokenizer(
    const std::vector<std::string>& patterns, std::string_view where) {
  std::vector<Step> steps;
  for (const std::string& pattern : patterns) {
    BELAY_ASSIGN_OR_RETURN(Step step, Compile(pattern, where));
    steps.push_back(std::move(step));
  }
  return std::make_unique<const RegexPreTokenizer>(std::move(steps));
}

StatusOr<std::unique_ptr<const PreTokenizer>> MakePreTokenizer(
    const std::vector<std::string>& patterns, std::string_view where) {
  if (AreDeepSeekPatterns(patterns)) return MakeDeepSeekPreTokenizer();
  return MakeRegexPreTokenizer(patterns, where);
}

}  // namespace belay::text
