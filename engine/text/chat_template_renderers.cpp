#include "engine/text/chat_template_renderers.h"

#include <optional>

#include "kernels/tensor/check.h"

namespace tessera {
namespace {

using Messages = std::span<const Message>;
using Segments = std::vector<Segment>;

Segment special(std::string_view token) {
  return {Segment::Kind::kSpecialToken, std::string(token)};
}

Segment text(std::string_view content) { return {Segment::Kind::kText, std::string(content)}; }

void append(Segments& segments, Segments more) {
  for (Segment& segment : more) segments.push_back(std::move(segment));
}

// `content` without ASCII white space at its ends.
std::string_view trimmed(std::string_view content) {
  constexpr std::string_view kWhiteSpace = " \t\n\v\f\r";
  const size_t begin = content.find_first_not_of(kWhiteSpace);
  if (begin == std::string_view::npos) return {};
  return content.substr(begin, content.find_last_not_of(kWhiteSpace) - begin + 1);
}

// A conversation in the formats that have turns of two: an optional system message, then user and
// assistant in turn, the user last.
struct Dialogue {
  std::optional<std::string_view> system;
  Messages turns;
};

Dialogue as_dialogue(Messages messages) {
  Dialogue dialogue{std::nullopt, messages};
  if (messages[0].role == Role::kSystem) dialogue = {messages[0].content, messages.subspan(1)};
  for (size_t i = 0; i < dialogue.turns.size(); ++i) {
    const Role expected = i % 2 == 0 ? Role::kUser : Role::kAssistant;
    CHECK(dialogue.turns[i].role == expected, "message ",
          i + messages.size() - dialogue.turns.size() + 1, " is from the ",
          to_string(dialogue.turns[i].role), " where this chat template needs the ",
          to_string(expected));
  }
  CHECK(dialogue.turns.size() % 2 == 1, "this chat template needs a last message from the user");
  return dialogue;
}

// Llama 2 trims what it puts together, so that white space inside, around the user's text, stays.
Segments render_llama2(Messages messages) {
  const Dialogue dialogue = as_dialogue(messages);
  Segments segments;
  for (size_t i = 0; i < dialogue.turns.size(); ++i) {
    const std::string_view content = dialogue.turns[i].content;
    if (dialogue.turns[i].role == Role::kAssistant) {
      append(segments, {text(" "), text(trimmed(content)), text(" "), special("</s>")});
      continue;
    }
    append(segments, {special("<s>"), text("[INST] ")});
    if (i == 0 && dialogue.system) {
      const std::string with_system =
          concat("<<SYS>>\n", *dialogue.system, "\n<</SYS>>\n\n", content);
      segments.push_back(text(trimmed(with_system)));
    } else {
      segments.push_back(text(trimmed(content)));
    }
    segments.push_back(text(" [/INST]"));
  }
  return segments;
}

Segments llama3_header(std::string_view role) {
  return {special("<|start_header_id|>"), text(role), special("<|end_header_id|>"), text("\n\n")};
}

void append_llama3_messages(Segments& segments, Messages messages) {
  for (const Message& message : messages) {
    append(segments, llama3_header(to_string(message.role)));
    append(segments, {text(trimmed(message.content)), special("<|eot_id|>")});
  }
  append(segments, llama3_header("assistant"));
}

Segments render_llama3(Messages messages) {
  Segments segments = {special("<|begin_of_text|>")};
  append_llama3_messages(segments, messages);
  return segments;
}

// The date is the one the template falls back to: a prompt that changes every day could not be
// reproduced.
Segments render_llama31(Messages messages) {
  const bool has_system = messages[0].role == Role::kSystem;
  Segments segments = {special("<|begin_of_text|>")};
  append(segments, llama3_header("system"));
  append(segments, {text("Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n"),
                    text(has_system ? trimmed(messages[0].content) : ""), special("<|eot_id|>")});
  append_llama3_messages(segments, messages.subspan(has_system ? 1 : 0));
  return segments;
}

// [INST] became a token of its own with the third tokenizer; here it is text.
Segments render_mistral_v1(Messages messages) {
  CHECK(messages[0].role != Role::kSystem, "this chat template has no place for a system message");
  Segments segments = {special("<s>")};
  for (const Message& message : as_dialogue(messages).turns) {
    if (message.role == Role::kUser) {
      append(segments, {text("[INST] "), text(message.content), text(" [/INST]")});
    } else {
      append(segments, {text(message.content), special("</s>")});
    }
  }
  return segments;
}

// The system message stands in the last turn. `has_spaces`: a space precedes every content, and
// answers are trimmed; Nemo, the same with another tokenizer, does neither.
Segments render_mistral_v3(Messages messages, bool has_spaces) {
  const std::string_view space = has_spaces ? " " : "";
  const Dialogue dialogue = as_dialogue(messages);
  Segments segments = {special("<s>")};
  for (size_t i = 0; i < dialogue.turns.size(); ++i) {
    const Message& message = dialogue.turns[i];
    if (message.role == Role::kAssistant) {
      append(segments, {text(space), text(has_spaces ? trimmed(message.content) : message.content),
                        special("</s>")});
      continue;
    }
    append(segments, {special("[INST]"), text(space)});
    if (dialogue.system && i + 1 == dialogue.turns.size()) {
      append(segments, {text(*dialogue.system), text("\n\n")});
    }
    append(segments, {text(message.content), special("[/INST]")});
  }
  return segments;
}

// Zephyr's role markers are text, not tokens.
Segments render_zephyr(Messages messages) {
  Segments segments;
  for (const Message& message : messages) {
    append(segments, {text(concat("<|", to_string(message.role), "|>\n")), text(message.content),
                      special("</s>"), text("\n")});
  }
  segments.push_back(text("<|assistant|>\n"));
  return segments;
}

Segments render_chatml(Messages messages) {
  Segments segments;
  for (const Message& message : messages) {
    append(segments, {special("<|im_start|>"), text(concat(to_string(message.role), "\n")),
                      text(message.content), special("<|im_end|>"), text("\n")});
  }
  append(segments, {special("<|im_start|>"), text("assistant\n")});
  return segments;
}

// The format of the model that comes with tessera.
Segments render_demo(Messages messages) {
  Segments segments = {special("<s>")};
  for (const Message& message : messages) {
    append(segments, {special(concat("<|", to_string(message.role), "|>")), text(message.content),
                      special("<|end|>")});
  }
  segments.push_back(special("<|assistant|>"));
  return segments;
}

}  // namespace

std::span<const ChatFormat> chat_formats() {
  static const std::vector<ChatFormat> formats = {
      {"chatml", render_chatml, {"<|im_end|>"}},
      {"demo", render_demo, {"<|end|>"}},
      {"llama2", render_llama2, {"</s>"}},
      {"llama3", render_llama3, {"<|eot_id|>", "<|end_of_text|>"}},
      {"llama3.1", render_llama31, {"<|eot_id|>", "<|eom_id|>", "<|end_of_text|>"}},
      {"mistral-nemo",
       [](Messages messages) { return render_mistral_v3(messages, false); },
       {"</s>"}},
      {"mistral-v1", render_mistral_v1, {"</s>"}},
      {"mistral-v3", [](Messages messages) { return render_mistral_v3(messages, true); }, {"</s>"}},
      {"zephyr", render_zephyr, {"</s>"}},
  };
  return formats;
}

}  // namespace tessera
