#include "apps/summarize/planning.h"

#include <utility>

#include "apps/answer/answer.h"

namespace tessera {
namespace {

// Of a prompt that holds all of the documents; 0 where these are surely too long.
int64_t whole_prompt_tokens(const Engine& engine, const Prompts& prompts,
                            std::span<const MappedDocument> documents) {
  const std::vector<Slice> slices = whole_slices(documents);
  int64_t num_tokens = 0;
  for (const Slice& slice : slices) num_tokens += slice.tokens.size();
  // A map may have more tokens than its text by itself, but not twice as many.
  if (num_tokens > 2 * engine.context_size()) return 0;
  try {
    return static_cast<int64_t>(prompts.encode(joined_text(documents, slices)).size());
  } catch (const PromptTooLong&) {
    return 0;
  }
}

}  // namespace

std::vector<MappedDocument> map_documents(const Engine& engine, const Prompts& prompts,
                                          std::vector<Document> documents, const Console& console) {
  ProgressBar bar(console, "tokenising");
  std::vector<MappedDocument> mapped;
  for (Document& document : documents) {
    MappedDocument& added = mapped.emplace_back();
    added.map = map_tokens(engine.tokenizer(), document.text, interruptible(bar));
    if (documents.size() > 1) added.header_tokens = prompts.header_tokens(document.name);
    added.name = std::move(document.name);
    added.text = std::move(document.text);
    added.offset_bytes = document.offset_bytes;
  }
  return mapped;
}

SummaryPlan plan_summary(const Engine& engine, const Prompts& prompts,
                         const SummarizeOptions& options, const SamplingParams& params,
                         std::span<const MappedDocument> documents) {
  const int64_t whole = options.chunk ? 0 : whole_prompt_tokens(engine, prompts, documents);
  return make_plan(documents, {.context_size = engine.context_size(),
                               .model_context_size = engine.folder().config.max_position_embeddings,
                               .longer_context = engine.text_limit().longer_context,
                               .frame_tokens = prompts.frame_tokens(),
                               .whole_prompt_tokens = whole,
                               .answer_tokens = reserved_tokens(params),
                               .has_answer_wish = options.sampling.max_tokens.value_or(0) > 0,
                               .on_overflow = options.on_overflow,
                               .chunk = options.chunk,
                               .chunk_tokens = options.chunk_tokens,
                               .overlap = options.overlap});
}

}  // namespace tessera
