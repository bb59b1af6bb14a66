// SPDX-License-Identifier: Apache-2.0
// One JSON value that a model writes, passed on while it comes.
#ifndef BELAY_TEXT_COMPLETION_JSON_VALUE_STREAM_H_
#define BELAY_TEXT_COMPLETION_JSON_VALUE_STREAM_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace belay::text {

// Valid JSON comes out unchanged, byte for byte. What models get wrong is
// repaired on the way, so that all output joined is valid JSON:
//
//   a bare word or sentence          Paris          ->  "Paris"
//   nothing at all                                  ->  ""
//   Python's words                   True           ->  true
//   an unescaped quote in a string   "a "b" c"      ->  "a \"b\" c"
//   a raw control character in one   "a<newline>b"  ->  "a\nb"
//   an unknown escape in one         "\d"           ->  "\\d"
//
// A quote ends a string when what follows it (after blanks) is what JSON wants
// there; that guess is what makes the repair possible while streaming. An
// object or list that cannot be read so is broken.
//
// The result does not depend on how the input is cut into pieces.
class JsonValueStream {
 public:
  // Appends to `out` what is certain by now. Returns the bytes taken: all, or
  // those before the byte that broke the value.
  size_t Feed(std::string_view text, std::string* out);

  // The value has ended. False when it is no JSON and cannot be made JSON;
  // `out` then holds a useless beginning.
  bool Finish(std::string* out);

  bool broken() const { return state_ == State::kBroken; }
  // True when the output is not the input.
  bool repaired() const { return repaired_; }

 private:
  enum class State {
    kLead,     // blanks before the value
    kWord,     // a number or word, alone or inside a container
    kBare,     // no JSON at all: the inside of a string that we opened
    kString,   // inside a string
    kEscape,   // behind a backslash inside a string
    kUnicode,  // in the four digits behind \u
    kQuote,    // behind a quote that may end a string, blanks included
    kValue,    // a value must come
    kFirst,    // a value or the end of the container just opened
    kKey,      // a key must come (after a comma)
    kColon,    // a colon must come
    kNext,     // a comma or the end of the container must come
    kDone,     // only blanks may come
    kBroken,
  };

  void Step(char c, std::string* out);
  void StepLead(char c, std::string* out);
  void StepWord(char c, std::string* out);
  void StepString(char c, std::string* out);
  void StepEscape(char c, std::string* out);
  void StepUnicode(char c, std::string* out);
  void StepQuote(char c, std::string* out);
  void StepStructure(char c, std::string* out);

  bool at_top() const { return nesting_.empty(); }
  void Open(char bracket, std::string* out);
  void Close(char bracket, std::string* out);
  void StartString(bool is_key, std::string* out);
  void StartWord(char c);
  // Puts out the word in `held_`; false when it is none.
  bool EndWord(std::string* out);
  void BecomeBare(std::string* out);
  bool QuoteEnds(char next) const;

  State state_ = State::kLead;
  std::string nesting_;  // the open brackets
  std::string held_;     // what is not certain yet
  bool is_key_ = false;  // the string being read is a key
  bool repaired_ = false;
};

}  // namespace belay::text

#endif  // BELAY_TEXT_COMPLETION_JSON_VALUE_STREAM_H_
