// From parts of documents to prompts.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "apps/summarize/options.h"
#include "apps/summarize/slice.h"
#include "apps/terminal/console.h"
#include "engine/engine.h"

namespace tessera {

// The parts one after the other: several documents each under its name, "[...]" where something
// between them is left out.
std::string joined_text(std::span<const MappedDocument> documents, std::span<const Slice> slices);

// What the user says in a prompt: the instruction, and the text that it is about.
std::vector<Message> summary_messages(const std::string& instruction, const std::string& text);

// Makes prompts of an instruction and a text, by the model's chat template.
class Prompts {
 public:
  // Says so where the template has no switch for thinking. Throws Error when there is no template.
  // All must outlive this.
  Prompts(const Engine& engine, const SummarizeOptions& options, const Console& console);

  // Throws PromptTooLong for what cannot fit by its length alone, Interrupted.
  std::vector<TokenId> encode(const std::string& text) const;
  // Tokens of a prompt without text.
  int64_t frame_tokens() const { return static_cast<int64_t>(encode("").size()); }
  // Tokens of the line that names a document.
  int64_t header_tokens(const std::string& name) const;

 private:
  const Engine& engine_;
  const Console& console_;
  std::string instruction_;
  ChatInputs inputs_;
};

}  // namespace tessera
