#include "apps/summarize/one_pass_context.h"

#include <algorithm>
#include <string>
#include <vector>

#include "apps/answer/needed_context.h"
#include "apps/summarize/prompts.h"
#include "apps/summarize/summarizer.h"
#include "engine/model_description.h"

namespace tessera {
namespace {

// As joined_text() of documents whose tokens are known.
std::string whole_text(std::span<const Document> documents) {
  std::vector<MappedDocument> parts;
  for (const Document& document : documents) {
    const int64_t header_tokens = documents.size() > 1 ? 1 : 0;  // one or more: it is named
    parts.push_back(
        {.name = document.name, .text = document.text, .map = {}, .header_tokens = header_tokens});
  }
  return joined_text(parts, whole_slices(parts));
}

int64_t longest_prompt(const PromptCounter& counter, const SummarizeOptions& options,
                       std::span<const Document> documents) {
  const size_t at_once = options.each ? 1 : documents.size();
  int64_t longest = 0;
  for (size_t begin = 0; begin < documents.size(); begin += at_once) {
    const std::vector<Message> messages =
        summary_messages(options.instruction.text(), whole_text(documents.subspan(begin, at_once)));
    longest = std::max(longest, counter.chat_tokens(messages, options.thinking.thinks));
  }
  return longest;
}

bool memory_holds(EngineOptions options, int64_t context_size) {
  options.context_size = context_size;
  return describe_model(options).memory_plan.has_value();
}

}  // namespace

int64_t one_pass_context(const SummarizeOptions& options, std::span<const Document> documents,
                         const Console& console) {
  const PromptCounter counter(options.engine, console);
  const int64_t context_size =
      counter.context_size(longest_prompt(counter, options, documents), summary_sampling(options));
  const bool may_cut = options.on_overflow != OnOverflow::kError;
  if (context_size == 0 || !may_cut || memory_holds(options.engine, context_size)) {
    return context_size;
  }
  console.say(concat("one pass would take a context of ", counted(context_size, "token"),
                     ", for which there is no memory: RoPE stays as it is"));
  return 0;
}

}  // namespace tessera
