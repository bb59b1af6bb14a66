// SPDX-License-Identifier: Apache-2.0
// What a model wrote, taken apart while it comes: reasoning, content, calls.
//
// Where the official parser (encoding_dsv4.py) accepts a completion, the
// result is the same. Where it raises, this one goes on: nothing a model
// writes is an error, nothing is lost, and what looked wrong is named in a
// diagnostic. docs/chat.md lists the cases.
#ifndef BELAY_TEXT_COMPLETION_PARSER_H_
#define BELAY_TEXT_COMPLETION_PARSER_H_

#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "text/chat/json.h"
#include "text/chat/request.h"
#include "text/completion/json_value_stream.h"
#include "text/completion/scan.h"
#include "text/detokenizer.h"

namespace belay::text {

// Something that a client may be told while the completion comes. Texts of one
// kind joined give the field of Completion, with the two exceptions that say
// so.
struct CompletionEvent {
  enum class Kind {
    kReasoning,      // text: more reasoning
    kContent,        // text: more content
    kCallBegin,      // a call; text: name of the function
    kCallArguments,  // text: more of the call's arguments in JSON
    kCallEnd,        // its arguments are complete
    // The call was cut or malformed and does not count; its whole text follows
    // as content.
    kCallAbandoned,
    // The model ended its turn without </think>: all reasoning so far was the
    // answer, and counts as content; there is no reasoning.
    kReasoningWasContent,
  };
  Kind kind;
  std::string text;
  // For calls: counts up from 0; the number of an abandoned call is not used
  // again.
  size_t call_index = 0;

  friend bool operator==(const CompletionEvent&,
                         const CompletionEvent&) = default;
};

// What was odd. `id` is in the catalogue (CHAT-010 to CHAT-015).
struct CompletionDiagnostic {
  ErrorId id;
  std::string detail;
};

// The message so far, or as a whole.
struct Completion {
  std::string reasoning_content;
  std::string content;
  std::vector<ToolCall> tool_calls;  // complete ones only; ids are ""
  // Tokens of the pieces that began before </think> (that token included).
  size_t n_reasoning_tokens = 0;
  std::vector<CompletionDiagnostic> diagnostics;
};

// Why no more text comes.
enum class CompletionEnd {
  kTurnEnded,  // EOS, or a stop string
  kCut,        // max tokens, an abort, or not known
};

// What of the markup counts. Markup that does not is text like any other.
struct CompletionRules {
  // Calls. Not where the request forbids them, or wants text alone.
  bool calls = true;
  // The end-of-sentence marker as text. Not where the caller knows the end from
  // token ids: a model can spell the marker with ordinary tokens.
  bool eos = true;
};

// One completion, fed in pieces. Any way to cut the text gives the same
// completion. Text leaves Feed at once, except a suffix that may still become
// a marker. Pieces need not end between characters, and bytes that are not
// UTF-8 become U+FFFD. Use by one thread.
class CompletionParser {
 public:
  // `mode` is that of the prompt: kThinking when it ended with <think>.
  explicit CompletionParser(ThinkingMode mode, CompletionRules rules = {});

  // `n_tokens` tokens made this text.
  std::vector<CompletionEvent> Feed(std::string_view text, size_t n_tokens = 0);

  // What was held back. An EOS in the text means kTurnEnded whatever `end`
  // says. No Feed may follow.
  std::vector<CompletionEvent> Finish(CompletionEnd end);

  const Completion& completion() const { return completion_; }

 private:
  enum class State {
    kStart,      // before the first character
    kReasoning,  // until </think>
    kContent,
    kBlockHead,     // behind "<|DSML|tool_calls"
    kBlock,         // between calls
    kBlockEnd,      // behind "</|DSML|tool_calls"
    kInvoke,        // behind "<|DSML|invoke"
    kAfterName,     // a parameter or the end of the call must come
    kParameter,     // behind "<|DSML|parameter"
    kValue,         // in the value of a parameter
    kInvokeCloser,  // behind "</|DSML|invoke"
    kBadInvoke,     // in the rest of a malformed call, which is content
    kAfterBlock,    // blanks behind a block
    kEnded,         // behind EOS
  };

  // Each looks at rest() and either consumes some of it or changes state, or
  // returns false: more input is needed.
  bool Step();
  bool StepStart();
  bool StepReasoning();
  bool StepContent();
  bool StepBlockHead();
  bool StepBlock();
  bool StepInvoke();
  bool StepAfterName();
  bool StepParameter();
  bool StepValue();
  bool StepBadInvoke();
  bool StepAfterBlock();
  bool SkipCloser(State next);  // an optional ">"

  std::string_view rest() const {
    return std::string_view(pending_).substr(at_);
  }
  void Consume(size_t n_bytes) { at_ += n_bytes; }
  // The same for text inside a call, which may have to become content.
  void ConsumeRaw(size_t n_bytes);

  // Emits and consumes: as reasoning or content, as part of a value.
  void TakeText(size_t n_bytes);
  void TakeValue(size_t n_bytes);

  void EnterBlock(size_t n_opener);
  void LeaveBlockHead();
  void CloseBlock();
  void OpenParameter(const ParameterTag& tag);
  void CloseValue();
  void BeginCall();
  void CommitCall();
  void FailCall(const ErrorId& id, std::string detail);
  bool EndTurn();
  bool FinishState();
  void FinishReasoning(bool turn_ended);
  void EmitRestOfBlock();
  void NoteMarkersInText();

  void Emit(CompletionEvent::Kind kind, std::string_view text);
  void EmitText(std::string_view text);
  void EmitArguments(std::string_view json);
  void NoteOnce(const ErrorId& id, std::string detail);

  // The markers that count; one that does not is what no text holds.
  const std::string_view eos_;
  const std::string_view calls_begin_;
  const std::string_view strict_calls_begin_;
  State state_ = State::kStart;
  Utf8Stream utf8_;
  std::string pending_;  // valid UTF-8; from at_ on not consumed yet
  size_t at_ = 0;
  std::vector<CompletionEvent> events_;
  Completion completion_;

  bool in_reasoning_ = false;  // no </think> yet
  bool saw_eos_ = false;
  CodeTracker code_;  // of the content
  // The current block and call.
  std::string raw_;             // their text that may yet become content
  size_t n_block_calls_ = 0;    // committed in this block
  bool block_is_text_ = false;  // its begin marker went out as content
  bool has_begun_ = false;      // kCallBegin of the current call is out
  size_t next_index_ = 0;
  ToolCall call_;
  std::set<std::string> parameters_;
  bool value_is_string_ = false;
  JsonValueStream json_;
};

// The whole text of a completion at once.
Completion ParseCompletion(std::string_view text, ThinkingMode mode,
                           CompletionEnd end = CompletionEnd::kCut);

// {"role", "content", "reasoning_content", "tool_calls"} as the official
// parser returns it.
JsonValue CompletionToJson(const Completion& completion);

}  // namespace belay::text

#endif  // BELAY_TEXT_COMPLETION_PARSER_H_
