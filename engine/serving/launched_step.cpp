#include "engine/serving/launched_step.h"

#include <algorithm>

#include "engine/serving/generation.h"

namespace tessera {
namespace {

TokenChunk chunk_of(const ScheduledSequence& item) {
  const Sequence& sequence = *item.request->sequence;
  const Generation& generation = *item.request->generation;
  const int64_t answer_index = item.known_end() - generation.result().prompt_tokens;
  return {.tokens = sequence.tokens(),
          .drafts = item.drafts,
          .block_table = sequence.block_table(),
          .begin = item.begin,
          .num_tokens = item.num_tokens,
          .draw_index = item.draw_index,
          .sampling = item.completes ? &generation.params() : nullptr,
          .answer_index = answer_index,
          .barred = generation.barred_tokens(answer_index)};
}

}  // namespace

bool LaunchedStep::is_wanted() const {
  return std::ranges::any_of(
      batch, [](const ScheduledSequence& item) { return item.request.has_value(); });
}

void LaunchedStep::forget(const Sequence& sequence) {
  for (ScheduledSequence& item : batch) {
    if (item.request && item.request->sequence == &sequence) item.request.reset();
  }
}

std::vector<TokenChunk> chunks_of(std::span<const ScheduledSequence> batch) {
  std::vector<TokenChunk> chunks;
  for (const ScheduledSequence& item : batch) chunks.push_back(chunk_of(item));
  return chunks;
}

}  // namespace tessera
