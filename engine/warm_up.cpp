// The first token of a process would wait for the code of every kernel to be loaded and for the
// matrix library to start: about as long as reading a gigabyte of weights. So a load runs each
// operation once while the weights are still on their way; what they compute does not matter.
#include <algorithm>

#include "engine/engine_impl.h"
#include "engine/serving/sequence.h"

namespace tessera {
namespace {

// Long enough for the kernels of long prompts, and as many as short prompts have: products of few
// tokens are computed in another way.
constexpr int64_t kWarmUpTokens = 128;
constexpr int64_t kFewTokens = 16;

}  // namespace

void Engine::Impl::warm_up() {
  const int64_t few_tokens = std::min({kFewTokens, limits.max_tokens, plan.context_size - 1});
  const int64_t many_tokens =
      std::min({kWarmUpTokens, limits.max_tokens, plan.context_size - 1 - few_tokens});
  if (few_tokens < 1) return;
  std::vector<TokenId> prompt(static_cast<size_t>(few_tokens + many_tokens) + 1);
  for (size_t i = 0; i < prompt.size(); ++i) {
    prompt[i] = static_cast<TokenId>(static_cast<int64_t>(i) % folder.config.vocab_size);
  }
  Sequence sequence(*cache, *tokenizer, [](Sequence&) {});
  sequence.start(prompt, {}, {});
  cache->grow(sequence.block_table(), sequence.num_tokens());
  // A prompt in two chunks but for its last token, then that token as if it had been generated.
  for (const int64_t num_tokens : {many_tokens, few_tokens, int64_t{1}}) {
    if (num_tokens == 0) continue;
    const ScheduledSequence chunk = next_tokens(sequence, num_tokens);
    const ForwardBatch batch =
        activations->inputs.prepare({&chunk, 1}, {}, *cache, backend->device());
    if (chunk.completes) {
      backend->device().start_download(
          activations->sampler.sample(transformer->sampled_logits(batch), {&chunk, 1},
                                      batch.sampling, tokenizer->size(), backend->operations()));
      backend->device().synchronize();
    } else {
      transformer->forward(batch);
    }
    sequence.advance(num_tokens);
  }
}

}  // namespace tessera
