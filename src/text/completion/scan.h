// SPDX-License-Identifier: Apache-2.0
// Small readers for the completion parser: each can say "not yet".
#ifndef BELAY_TEXT_COMPLETION_SCAN_H_
#define BELAY_TEXT_COMPLETION_SCAN_H_

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>

namespace belay::text {

enum class Match { kNo, kYes, kNotYet };

// Whether `text` begins with `literal`; kNotYet when text is too short to say.
Match MatchPrefix(std::string_view text, std::string_view literal);

// Where text ends and a marker begins.
struct Found {
  size_t n_text = 0;  // bytes that are certainly text
  int marker = -1;    // index into the markers, or -1: text goes on, and what
                      // is behind n_text may become a marker
};

// The first place in `text` where one of `markers` stands or may come to
// stand. At one place the first of them wins.
Found FindMarker(std::string_view text,
                 std::initializer_list<std::string_view> markers);

// Leading blanks (space, tab, newline, return), in bytes.
size_t CountBlanks(std::string_view text);

// The head of a DSML parameter, from behind "<｜DSML｜parameter" to ">".
struct ParameterTag {
  Match match = Match::kNotYet;
  size_t n_bytes = 0;  // with the ">"
  std::string name;
  bool is_string = true;
  bool has_string = false;  // the string attribute was there
};

// Reads ` name="N" string="true|false">`. Quotes inside N are part of it, as
// in the official parser; attributes in another order, others beside them and
// a missing string attribute are taken, too. kNo: this is no such tag.
ParameterTag ReadParameterTag(std::string_view text);

// Whether the text so far ends inside Markdown code.
class CodeTracker {
 public:
  void Append(std::string_view text);
  // An open fence, or an open back quote on the last line.
  bool in_code() const;

 private:
  void EndRun();

  bool in_fence_ = false;
  bool in_span_ = false;
  bool at_line_start_ = true;  // only blanks and the current run before here
  size_t run_ = 0;             // back quotes just seen
};

}  // namespace belay::text

#endif  // BELAY_TEXT_COMPLETION_SCAN_H_
