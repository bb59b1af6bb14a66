// SPDX-License-Identifier: Apache-2.0
#include "text/chat/render.h"

#include <algorithm>
#include <map>

#include "base/error_ids.h"
#include "base/file.h"
#include "text/chat/templates.h"
#include "text/chat/tokens.h"

namespace belay::text {
namespace {

using Messages = std::vector<ChatMessage>;

// The encoding has no tool role: results are blocks of the user turn that
// follows the calls, and neighbouring user messages are one turn. A user
// message with a task starts a turn of its own after it, but a tool result
// still joins it. Of a merged message only the text stays (its task is lost),
// as in the reference.
Messages MergeTurns(const Messages& messages) {
  Messages merged;
  for (const ChatMessage& message : messages) {
    const bool is_tool = message.role == Role::kTool;
    const bool joins = (is_tool || message.role == Role::kUser) &&
                       !merged.empty() && merged.back().role == Role::kUser &&
                       (is_tool || !merged.back().task.has_value());
    if (joins) {
      auto& blocks = merged.back().blocks;
      blocks.insert(blocks.end(), message.blocks.begin(), message.blocks.end());
      continue;
    }
    merged.push_back(message);
    if (!is_tool) continue;
    merged.back() = ChatMessage();
    merged.back().blocks = message.blocks;
  }
  return merged;
}

using CallOrder = std::map<std::string, size_t>;

void NoteCalls(const ChatMessage& message, CallOrder* order) {
  if (message.role != Role::kAssistant || message.tool_calls.empty()) return;
  order->clear();
  for (size_t i = 0; i < message.tool_calls.size(); ++i) {
    if (!message.tool_calls[i].id.empty()) {
      (*order)[message.tool_calls[i].id] = i;
    }
  }
}

// Puts the results of one turn into the order of the calls; text keeps its
// place between them. A result of no known call sorts with the first call.
void SortResults(const CallOrder& order, std::vector<ContentBlock>* blocks) {
  std::vector<ContentBlock> results;
  for (const ContentBlock& block : *blocks) {
    if (block.kind == ContentBlock::Kind::kToolResult) {
      results.push_back(block);
    }
  }
  const auto place = [&](const ContentBlock& block) {
    const auto found = order.find(block.tool_call_id);
    return found == order.end() ? size_t{0} : found->second;
  };
  std::stable_sort(results.begin(), results.end(),
                   [&](const ContentBlock& a, const ContentBlock& b) {
                     return place(a) < place(b);
                   });
  size_t next = 0;
  for (ContentBlock& block : *blocks) {
    if (block.kind == ContentBlock::Kind::kToolResult) {
      block = results[next++];
    }
  }
}

// `earlier` are the messages before these whose calls still count.
void SortAllResults(const Messages& earlier, Messages* messages) {
  CallOrder order;
  for (const ChatMessage& message : earlier) NoteCalls(message, &order);
  for (ChatMessage& message : *messages) {
    NoteCalls(message, &order);
    if (message.role == Role::kUser && !order.empty()) {
      SortResults(order, &message.blocks);
    }
  }
}

// Index of the last user or developer message, -1 when there is none.
int LastUserIndex(const Messages& messages) {
  for (size_t i = messages.size(); i > 0; --i) {
    const Role role = messages[i - 1].role;
    if (role == Role::kUser || role == Role::kDeveloper) {
      return static_cast<int>(i) - 1;
    }
  }
  return -1;
}

// Developer messages before the last user message go with the reasoning. (The
// reasoning itself is left out while rendering.)
Messages DropEarlierDevelopers(const Messages& messages) {
  const int last_user = LastUserIndex(messages);
  Messages kept;
  for (size_t i = 0; i < messages.size(); ++i) {
    const bool is_earlier = static_cast<int>(i) < last_user;
    if (is_earlier && messages[i].role == Role::kDeveloper) continue;
    kept.push_back(messages[i]);
  }
  return kept;
}

StatusOr<std::string_view> EffortText(ReasoningEffort effort,
                                      EncodingRevision revision) {
  const bool is_initial = revision == EncodingRevision::kInitial;
  switch (effort) {
    case ReasoningEffort::kDefault:
      return std::string_view();
    case ReasoningEffort::kLow:
      if (!is_initial) return std::string_view();
      return MakeError(kChatBadOption,
                       {.where = "reasoning_effort",
                        .what = "the initial encoding does not have it",
                        .expected = "high or max",
                        .got = "low"});
    case ReasoningEffort::kHigh:
      return is_initial ? std::string_view() : kEffortAbsolute;
    case ReasoningEffort::kMax:
      return is_initial ? kEffortAbsolute : kEffortBeyond;
  }
  return std::string_view();
}

// The conversation after merging and dropping, and how it is to be rendered.
struct Plan {
  Messages messages;
  size_t n_context = 0;  // of them are not rendered
  int last_user = -1;
  bool is_thinking = false;
  bool drops_reasoning = false;
};

Plan MakePlan(const ChatRequest& request) {
  Messages messages = MergeTurns(request.messages);
  SortAllResults(request.context, &messages);
  Messages context = MergeTurns(request.context);
  SortAllResults({}, &context);

  Plan plan;
  plan.is_thinking = request.thinking_mode == ThinkingMode::kThinking;
  plan.n_context = context.size();
  plan.messages = context;
  plan.messages.insert(plan.messages.end(), messages.begin(), messages.end());
  const bool has_tools = std::any_of(
      plan.messages.begin(), plan.messages.end(),
      [](const ChatMessage& message) { return !message.tools.empty(); });
  plan.drops_reasoning = request.drop_earlier_reasoning && !has_tools;
  if (plan.is_thinking && plan.drops_reasoning) {
    plan.messages = DropEarlierDevelopers(plan.messages);
    plan.n_context =
        std::min(plan.messages.size(), DropEarlierDevelopers(context).size());
  }
  plan.last_user = LastUserIndex(plan.messages);
  return plan;
}

class Renderer {
 public:
  explicit Renderer(const Plan& plan) : plan_(plan) {}

  Status Append(size_t index, std::string* out) const {
    const ChatMessage& message = plan_.messages[index];
    switch (message.role) {
      case Role::kSystem:
        AppendInstructions(message, out);
        break;
      case Role::kDeveloper:
        if (message.content.empty()) return EmptyDeveloper();
        out->append(kUserMark);
        AppendInstructions(message, out);
        break;
      case Role::kUser:
      case Role::kTool:  // MergeTurns left none
        AppendUser(message, out);
        break;
      case Role::kLatestReminder:
        out->append(kReminderMark).append(message.content);
        break;
      case Role::kAssistant:
        AppendAssistant(index, out);
        break;
    }
    AppendTransition(index, out);
    return absl::OkStatus();
  }

 private:
  static Status EmptyDeveloper() {
    return MakeError(kChatBadMessage,
                     {.where = "developer message",
                      .what = "the encoding has no empty developer message",
                      .expected = "content",
                      .got = "none"});
  }

  static void AppendInstructions(const ChatMessage& message, std::string* out) {
    out->append(message.content).append(RenderTools(message.tools));
    if (message.response_format.has_value()) {
      out->append(RenderResponseFormat(*message.response_format));
    }
  }

  static void AppendUser(const ChatMessage& message, std::string* out) {
    out->append(kUserMark);
    const char* separator = "";
    for (const ContentBlock& block : message.blocks) {
      out->append(separator);
      separator = "\n\n";
      if (block.kind == ContentBlock::Kind::kText) {
        out->append(block.text);
      } else {
        out->append("<tool_result>").append(block.text);
        out->append("</tool_result>");
      }
    }
  }

  void AppendAssistant(size_t index, std::string* out) const {
    const ChatMessage& message = plan_.messages[index];
    // The answer to a task comes without reasoning.
    const bool answers_task =
        index > 0 && plan_.messages[index - 1].task.has_value();
    const bool keeps_reasoning =
        !plan_.drops_reasoning || static_cast<int>(index) > plan_.last_user;
    if (plan_.is_thinking && !answers_task && keeps_reasoning) {
      out->append(message.reasoning_content).append(kThinkEnd);
    }
    out->append(message.content).append(RenderToolCalls(message.tool_calls));
    if (!message.without_eos) out->append(kEos);
  }

  // What leads over to the assistant, when it is the assistant's turn next.
  void AppendTransition(size_t index, std::string* out) const {
    if (index + 1 < plan_.messages.size()) {
      const Role next = plan_.messages[index + 1].role;
      if (next != Role::kAssistant && next != Role::kLatestReminder) return;
    }
    const ChatMessage& message = plan_.messages[index];
    if (message.task == Task::kAction) {
      out->append(kAssistantMark);
      out->append(plan_.is_thinking ? kThinkBegin : kThinkEnd);
      out->append(TaskMark(*message.task));
    } else if (message.task.has_value()) {
      out->append(TaskMark(*message.task));
    } else if (message.role == Role::kUser ||
               message.role == Role::kDeveloper) {
      const bool is_current = static_cast<int>(index) >= plan_.last_user;
      const bool thinks =
          plan_.is_thinking && (!plan_.drops_reasoning || is_current);
      out->append(kAssistantMark).append(thinks ? kThinkBegin : kThinkEnd);
    }
  }

  const Plan& plan_;
};

}  // namespace

StatusOr<EncodingRevision> ParseEncodingRevision(std::string_view name) {
  if (name == "initial") return EncodingRevision::kInitial;
  if (name == "0731") return EncodingRevision::k0731;
  return MakeError(kChatBadOption, {.where = "encoding",
                                    .what = "",
                                    .expected = "initial or 0731",
                                    .got = std::string(name)});
}

std::optional<EncodingRevision> RevisionOfEncoder(std::string_view source) {
  const auto has = [&](std::string_view text) {
    return source.find(text) != std::string_view::npos;
  };
  if (has("Reasoning Effort: Beyond maximum")) return EncodingRevision::k0731;
  if (has("Reasoning Effort: Absolute maximum")) {
    return EncodingRevision::kInitial;
  }
  return std::nullopt;
}

std::optional<EncodingRevision> RevisionOfCheckpoint(
    const std::string& folder) {
  if (const auto source = ReadFile(folder + "/encoding/encoding_dsv4.py");
      source.ok()) {
    if (const auto revision = RevisionOfEncoder(*source)) return revision;
  }
  const auto config = ReadFile(folder + "/config.json");
  const bool has_dspark =
      config.ok() && config->find("\"dspark_") != std::string::npos;
  if (has_dspark) return EncodingRevision::k0731;
  return std::nullopt;
}

StatusOr<std::string> RenderChat(const ChatRequest& request,
                                 EncodingRevision revision) {
  BELAY_ASSIGN_OR_RETURN(const std::string_view effort_text,
                         EffortText(request.effort, revision));
  const Plan plan = MakePlan(request);
  std::string prompt;
  if (request.add_bos && request.context.empty()) prompt += kBos;
  const Renderer renderer(plan);
  for (size_t i = plan.n_context; i < plan.messages.size(); ++i) {
    if (i == 0 && plan.is_thinking) prompt += effort_text;
    BELAY_RETURN_IF_ERROR(renderer.Append(i, &prompt));
  }
  return prompt;
}

bool PromptIsFinished(const ChatRequest& request) {
  if (request.messages.empty()) return false;
  const ChatMessage& last = request.messages.back();
  return last.role == Role::kAssistant && !last.without_eos &&
         !last.task.has_value();
}

}  // namespace belay::text
