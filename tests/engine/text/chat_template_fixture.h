// Conversations, templates and a tokenizer for tests of chat templates.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/text/chat_template.h"
#include "tests/engine/text/tokenizer_fixture.h"

namespace tessera {

inline constexpr const char* kDemoTemplate =
    "{{ bos_token }}{% for message in messages %}{{ '<|' + message['role'] + '|>' + "
    "message['content'] + '<|end|>' }}{% endfor %}{% if add_generation_prompt %}{{ "
    "'<|assistant|>' }}{% endif %}";

// The spaces show who trims what.
inline const std::vector<Message> kDialogue = {
    {Role::kUser, " U1 "}, {Role::kAssistant, " A1 "}, {Role::kUser, "U2"}};

inline std::vector<Message> with_system() {
  std::vector<Message> messages = {{Role::kSystem, "S"}};
  messages.insert(messages.end(), kDialogue.begin(), kDialogue.end());
  return messages;
}

inline ModelFolder folder_with(const std::string& chat_template) {
  ModelFolder folder;
  folder.path = "models/some";
  folder.tokenizer = small_config();
  folder.tokenizer.chat_template = chat_template;
  return folder;
}

inline ModelFolder folder_with(std::vector<NamedChatTemplate> templates) {
  ModelFolder folder = folder_with(templates.front().source);
  folder.tokenizer.named_chat_templates = std::move(templates);
  return folder;
}

inline std::string text_of(const std::vector<Segment>& segments) {
  std::string text;
  for (const Segment& segment : segments) text += segment.content;
  return text;
}

// Has the special tokens of every built-in format.
inline const Tokenizer& full_tokenizer() {
  static const std::unique_ptr<Tokenizer> tokenizer = [] {
    SentencePieceBuilder builder = small_model();
    for (const char* const token : {"<|im_start|>", "<|im_end|>", "<|begin_of_text|>",
                                    "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>",
                                    "[INST]", "[/INST]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]"}) {
      builder.add(token, PieceType::kControl);
    }
    return load_tokenizer(builder.build(), small_config());
  }();
  return *tokenizer;
}

inline ChatTemplate built_in(const std::string& name,
                             const Tokenizer& tokenizer = full_tokenizer()) {
  return ChatTemplate::choose(name, folder_with("unused"), tokenizer);
}

}  // namespace tessera
