// A model's own chat template, run as it is.
//
// What it prints becomes segments by where each byte came from: special tokens are looked for only
// in what the template wrote, from end to end, so that no message can produce one, whatever the
// template cuts it into and puts together again.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text/jinja/template.h"
#include "engine/text/message.h"
#include "engine/text/segment_encoder.h"
#include "engine/text/tokenizer.h"
#include "model_loaders/tokenizer_config.h"

namespace tessera {

// What belongs to a template beside its text.
struct JinjaSurroundings {
  std::string path;                                // of the folder or file; begins its errors
  std::string hint;                                // ends them
  const TokenizerConfig& config;                   // whose special tokens it may name
  const std::vector<TemplateArgument>& arguments;  // its variables in every conversation
};

class JinjaChatTemplate {
 public:
  // Throws Error when `source` is no template, and for arguments that are no JSON or have the name
  // of what a conversation brings: messages, tools, add_generation_prompt.
  JinjaChatTemplate(std::string_view source, const JinjaSurroundings& surroundings,
                    const Tokenizer& tokenizer);

  // The conversation, of at least one message, up to where the answer begins. Throws Error when the
  // template refuses it or fails, and for arguments like the constructor.
  std::vector<Segment> render(std::span<const Message> messages, const ChatInputs& inputs,
                              const Pause& pause) const;

  // Whether the template has `word` for a name, or as a whole text in quotes.
  bool mentions(std::string_view word) const { return template_.mentions(word); }
  // Whether its source has `text` anywhere.
  bool writes(std::string_view text) const { return source_.find(text) != std::string::npos; }

 private:
  jinja::Dict variables(std::span<const Message> messages, const ChatInputs& inputs) const;
  void append_template_text(std::string_view text, std::vector<Segment>& segments) const;
  // The longest special token that `text` begins with, or "".
  std::string_view special_token_of(std::string_view text) const;

  std::string path_;
  std::string hint_;
  std::string source_;
  jinja::Dict fixed_variables_;              // bos_token and its like, arguments
  std::vector<std::string> special_tokens_;  // sorted
  jinja::Template template_;
};

}  // namespace tessera
