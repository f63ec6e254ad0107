#include "engine/model/model_runner.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "engine/model/host_tensor.h"
#include "engine/model/kv_transfer.h"
#include "engine/model/sampling_lists.h"
#include "engine/model/stop_scope.h"
#include "kernels/fused_decoder.h"

namespace tessera {

ModelRunner::ModelRunner(const ModelConfig& config, const Checkpoint& checkpoint,
                         const MemoryPlan& plan, int64_t num_candidates,
                         std::unique_ptr<Backend> backend)
    : config_(config),
      limits_(plan.limits),
      page_size_(plan.page_size),
      num_candidates_(num_candidates),
      backend_(std::move(backend)),
      weights_(config, checkpoint, backend_->operations(), plan.limits.context_size),
      cache_(config, plan.num_pages, plan.page_size, plan.limits.kv_dtype, backend_->operations()),
      step_memory_(backend_->device().allocate(plan.activation_bytes, "the activations")),
      step_arena_(step_memory_),
      buffers_(step_arena_, config, plan.limits, plan.page_size,
               backend_->fused_operations(config.block)),
      transformer_(weights_, cache_.layers(), buffers_.activations, backend_->operations()),
      recorded_steps_(backend_->device()),
      fused_decoder_problem_(use_fused_decoder()) {}

// The memory that a launched step uses is freed before the device is.
ModelRunner::~ModelRunner() {
  try {
    backend_->device().synchronize();
  } catch (const Error& error) {
    spdlog::error("{}", error.what());
  }
}

std::string ModelRunner::use_fused_decoder() {
  std::string problem;
  transformer_.use_fused_decoder(backend_->make_fused_decoder(transformer_.fused_model(), problem));
  return problem;
}

uint64_t ModelRunner::read_weights(const Checkpoint& checkpoint, bool check_values,
                                   const LoadProgress& progress) {
  return weights_.read(checkpoint, backend_->device(), check_values, progress);
}

// One kernel is a whole already, and what the host decides for it depends on lengths of contexts.
Tensor ModelRunner::sampled_logits(const ForwardBatch& batch) {
  if (transformer_.runs_in_one_kernel(batch)) return transformer_.sampled_logits(batch);
  recorded_steps_.run(batch, [&] { transformer_.sampled_logits(batch); });
  return transformer_.logits_of_step(batch.sampled_rows.dim(0));
}

LaunchedTokens ModelRunner::compute(std::span<const TokenChunk> step) {
  const ForwardBatch batch = buffers_.inputs.prepare(step, drawn_, backend_->operations());
  const int64_t num_sampled = batch.sampled_rows.dim(0);
  if (num_sampled == 0) {
    transformer_.fill_cache(batch);
    return {};
  }
  drawn_ = buffers_.sampler.sample(sampled_logits(batch), step, batch.sampling, num_candidates_,
                                   backend_->operations());
  return {.count = num_sampled,
          .download = backend_->device().start_download(drawn_),
          .has_logprobs = num_top_logprobs(step).has_value()};
}

// A device that asks keeps the host until it has nearly done. Where it is asynchronous, the host
// then takes the tokens of the step before only afterwards, for which sequences that decode do not
// wait. Those come first; with drafts they have several tokens and no prompts beside them. Steps of
// decodes alone may be recorded, which no device does while it asks.
bool ModelRunner::asks(std::span<const TokenChunk> step) const {
  const auto is_short = [](const TokenChunk& chunk) {
    return chunk.num_tokens <= kMaxDecodeQueryLength;
  };
  const bool has_decodes = step.front().num_tokens == 1 || std::ranges::all_of(step, is_short);
  return !has_decodes || !backend_->device().is_asynchronous();
}

LaunchedTokens ModelRunner::launch(std::span<const TokenChunk> step,
                                   const StopQuestion& should_stop) {
  const StopScope scope(backend_->device(), asks(step) ? should_stop : StopQuestion());
  LaunchedTokens launched = compute(step);
  if (launched.count == 0) {
    // So that prefill progress and cancelling keep pace with the device.
    launched.download = backend_->device().start_download(buffers_.inputs.any_word());
  }
  return launched;
}

std::vector<DrawnToken> ModelRunner::collect(const LaunchedTokens& step) {
  std::vector<int32_t> drawn(static_cast<size_t>(std::max<int64_t>(step.count, 1)));
  backend_->device().finish_download(host_tensor(drawn), step.download);
  drawn.resize(static_cast<size_t>(step.count));
  std::vector<DrawnToken> tokens;
  for (const int32_t token : drawn) {
    tokens.push_back({.id = token == kNonFiniteLogits ? std::nullopt : std::optional(token),
                      .logprobs = std::nullopt});
  }
  if (step.has_logprobs) buffers_.sampler.download_logprobs(tokens, backend_->device());
  return tokens;
}

std::vector<float> ModelRunner::prompt_logits(std::span<const TokenId> prompt,
                                              std::span<const int32_t> block_table,
                                              const StopQuestion& should_stop) {
  const StopScope scope(backend_->device(), should_stop);
  const auto num_tokens = static_cast<int64_t>(prompt.size());
  std::vector<float> result;
  TokenChunk chunk = {.tokens = prompt, .block_table = block_table};
  for (; chunk.begin < num_tokens; chunk.begin = chunk.end()) {
    chunk.num_tokens = std::min(num_tokens - chunk.begin, limits_.max_tokens);
    transformer_.forward(buffers_.inputs.prepare({&chunk, 1}, drawn_, backend_->operations()));
    for (int64_t begin = 0; begin < chunk.num_tokens; begin += limits_.max_sequences) {
      const int64_t end = std::min(begin + limits_.max_sequences, chunk.num_tokens);
      const Tensor rows = buffers_.inputs.rows(begin, end, backend_->device());
      std::vector<float> logits(static_cast<size_t>((end - begin) * config_.vocab_size));
      backend_->device().download(host_tensor(logits, {end - begin, config_.vocab_size}),
                                  transformer_.logits(rows));
      result.insert(result.end(), logits.begin(), logits.end());
    }
  }
  return result;
}

void ModelRunner::read_kv(const KvFile& file, std::span<const int32_t> pages,
                          const LoadProgress& progress) {
  read_kv_pages(file, pages, cache_.layers(), backend_->device(), progress);
}

void ModelRunner::write_kv(std::span<const int32_t> pages, KvFileWriter& writer,
                           const LoadProgress& progress) const {
  write_kv_pages(pages, cache_.layers(), backend_->device(), writer, progress);
}

uint64_t ModelRunner::allocated_bytes() const {
  return weights_.size_in_memory() + cache_.size_bytes() + step_memory_.size_bytes();
}

}  // namespace tessera
