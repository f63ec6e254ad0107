#include "engine/engine_impl.h"

#include <iterator>

namespace tessera {

// A context whose keys are turned as those of this one; 0 where they are the same in any.
static int64_t rope_context(const ModelConfig& config, int64_t context_size) {
  if (config.stretch && config.stretch->factor > 1.0) return config.max_position_embeddings;
  for (const RopeTable& table : config.rope_tables) {
    const RopeScaling& scaling = table.scaling;
    if (context_size <= scaling.original_max_position_embeddings) continue;
    if (scaling.kind == RopeScaling::Kind::kDynamic) return context_size;
    // All long contexts have the same factors.
    if (scaling.kind == RopeScaling::Kind::kLongRope) return config.max_position_embeddings;
  }
  return 0;
}

KvLayout Engine::Impl::kv_layout() const {
  KvLayout layout = runner->kv_layout();
  layout.rope_context = rope_context(folder.config, plan.limits.context_size);
  return layout;
}

void Engine::Impl::check_tokens(std::span<const TokenId> tokens) const {
  for (const TokenId token : tokens) {
    CHECK(token >= 0 && token < folder.config.vocab_size, "token id ", token,
          " is outside the vocabulary of ", folder.config.vocab_size);
  }
}

TextLimit Engine::Impl::text_limit() const {
  return {.context_size = plan.limits.context_size,
          .max_token_bytes = tokenizer->max_token_bytes(),
          .longer_context = longer_context};
}

// What helps where prompt and answer do not fit.
static std::string hint_for(const ContextDemand& demand, const TextLimit& limit) {
  if (demand.prompt_tokens >= demand.context_size) return limit.hint();
  const std::string& longer = limit.longer_context;
  return concat("shorten the prompt or --max-tokens",
                longer.empty() ? "" : concat("; ", longer, " takes more"));
}

void Engine::Impl::check_prompt(std::span<const TokenId> prompt, int64_t reserved) const {
  CHECK(!prompt.empty(), "the prompt is empty");
  check_tokens(prompt);
  const ContextDemand demand = {.prompt_tokens = static_cast<int64_t>(prompt.size()),
                                .answer_tokens = reserved,
                                .context_size = plan.limits.context_size};
  if (demand.fits()) return;
  throw PromptTooLong(demand.problem(), hint_for(demand, text_limit()));
}

void Engine::Impl::submit(Sequence& sequence, std::span<const TokenId> prompt,
                          const SamplingParams& params, const GenerationCallbacks& callbacks) {
  validate(params);
  CHECK(!loop->is_generating(sequence), "the sequence is still generating");
  check_prompt(prompt, reserved_tokens(params));
  loop->submit(sequence, prompt, params, callbacks);
}

static constexpr const char* kNeedsPrefixCache = "files of keys and values need the prefix cache";

void Engine::Impl::load_kv(const KvFile& file, const LoadProgress& progress) {
  CHECK(loop->has_prefix_cache(), kNeedsPrefixCache);
  const KvLayout& layout = file.header().layout;
  const KvLayout own = kv_layout();
  if (layout != own) {
    throw Error(concat(file.path(), ": holds ", layout.text(), "; this run has ", own.text()),
                "give the options that it was made with, or make another with tessera prefill");
  }
  if (file.header().num_tokens() >= plan.limits.context_size) {
    throw Error(concat(file.path(), ": holds ", counted(file.header().num_tokens(), "token"),
                       ", which leave no room in the context of ", plan.limits.context_size),
                longer_context.empty() ? "" : longer_context + " takes more");
  }
  check_tokens(file.tokens());
  CHECK(file.scales() == runner->kv_scales(), file.path(),
        ": its scales of float8_e4m3 are others than this run's, which another device has chosen");
  loop->restore(file.tokens(),
                [&](std::span<const int32_t> table) { runner->read_kv(file, table, progress); });
}

int64_t Engine::Impl::save_kv(std::span<const TokenId> prompt, const KvFileOrigin& origin,
                              const ByteSink& write, const LoadProgress& progress) const {
  CHECK(loop->has_prefix_cache(), kNeedsPrefixCache);
  const BlockTable table = loop->cached_pages(prompt);
  const int64_t num_tokens = std::ssize(table) * pages->page_size();
  if (num_tokens == 0) return 0;
  KvFileWriter writer({.model_fingerprint = origin.model_fingerprint, .layout = kv_layout()},
                      origin.text, prompt.first(static_cast<size_t>(num_tokens)),
                      runner->kv_scales(), write);
  runner->write_kv(table, writer, progress);
  writer.finish();
  return num_tokens;
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
