#include "engine/engine_impl.h"

namespace tessera {

void Engine::Impl::check_prompt(std::span<const TokenId> prompt, int64_t reserved) const {
  CHECK(!prompt.empty(), "the prompt is empty");
  for (const TokenId token : prompt) {
    CHECK(token >= 0 && token < folder.config.vocab_size, "token id ", token,
          " is outside the vocabulary of ", folder.config.vocab_size);
  }
  const ContextDemand demand = {.prompt_tokens = static_cast<int64_t>(prompt.size()),
                                .answer_tokens = reserved,
                                .context_size = plan.limits.context_size};
  if (demand.fits()) return;
  const int64_t longest = folder.config.max_position_embeddings;
  throw PromptTooLong(demand.problem(), demand.context_size < longest
                                            ? concat("the model itself takes up to ",
                                                     counted(longest, "token"), ": see --ctx-size")
                                            : "shorten the prompt or --max-tokens");
}

void Engine::Impl::submit(Sequence& sequence, std::span<const TokenId> prompt,
                          const SamplingParams& params, const GenerationCallbacks& callbacks) {
  validate(params);
  CHECK(!loop->is_generating(sequence), "the sequence is still generating");
  check_prompt(prompt, reserved_tokens(params));
  loop->submit(sequence, prompt, params, callbacks);
}

std::vector<float> Engine::Impl::prompt_logits(std::span<const TokenId> prompt,
                                               const StopQuestion& should_stop) {
  check_prompt(prompt, 0);
  Sequence sequence(*pages);
  sequence.start(prompt);
  BlockTable& table = sequence.block_table();
  while (pages->pages_missing(table, sequence.num_tokens()) > pages->num_free_pages() &&
         loop->release_oldest_unused_cache()) {
  }
  pages->grow(table, sequence.num_tokens());
  return runner->prompt_logits(prompt, table, should_stop);
}

}  // namespace tessera
