#include "apps/summarize/prompts.h"

#include "apps/answer/answer.h"

namespace tessera {
namespace {

std::string header(const std::string& name) { return printable(name) + ":\n\n"; }

// Whether the second part goes on where the first ends.
bool is_contiguous(std::span<const MappedDocument> documents, const Slice& left,
                   const Slice& right) {
  if (left.document == right.document) return left.bytes.end == right.bytes.begin;
  const auto left_bytes = static_cast<int64_t>(documents[left.document].text.size());
  return right.document == left.document + 1 && left.bytes.end == left_bytes &&
         right.bytes.begin == 0;
}

}  // namespace

std::string joined_text(std::span<const MappedDocument> documents, std::span<const Slice> slices) {
  std::string text;
  for (size_t index = 0; index < slices.size(); ++index) {
    const Slice& slice = slices[index];
    const MappedDocument& document = documents[slice.document];
    if (index > 0) {
      text += is_contiguous(documents, slices[index - 1], slice) ? "\n\n" : "\n\n[...]\n\n";
    }
    if (document.header_tokens > 0) text += header(document.name);
    text.append(document.text, static_cast<size_t>(slice.bytes.begin),
                static_cast<size_t>(slice.bytes.size()));
  }
  return text;
}

std::vector<Message> summary_messages(const std::string& instruction, const std::string& text) {
  return {{Role::kUser, instruction + "\n\n" + text}};
}

Prompts::Prompts(const Engine& engine, const SummarizeOptions& options, const Console& console)
    : engine_(engine),
      console_(console),
      instruction_(options.instruction.text()),
      inputs_(thinking_inputs(engine, options.thinking.thinks, console)) {}

std::vector<TokenId> Prompts::encode(const std::string& text) const {
  ProgressBar bar(console_, "tokenising");
  return engine_.encode_chat(summary_messages(instruction_, text), inputs_, interruptible(bar));
}

int64_t Prompts::header_tokens(const std::string& name) const {
  return static_cast<int64_t>(engine_.tokenizer().encode(header(name), false).size());
}

}  // namespace tessera
