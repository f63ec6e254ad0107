#include "engine/options.h"

#include "kernels/tensor/check.h"

namespace tessera {

void validate(const EngineOptions& options) {
  CHECK(!options.model.empty(), "no model given");
  check_limits("context_size", options.context_size, kContextSizeLimits);
  check_limits("max_sequences", options.max_sequences, kMaxSequencesLimits);
  check_limits("page_size", options.page_size, kPageSizeLimits);
  check_limits("prefill_chunk", options.prefill_chunk, kPrefillChunkLimits);
  check_limits("num_threads", int64_t{options.num_threads}, kThreadsLimits);
  CHECK(options.cuda_index >= 0, "cuda_index must not be negative, got ", options.cuda_index);
  CHECK(options.compute_dtype == DType::kBFloat16 || options.compute_dtype == DType::kFloat16,
        "compute_dtype must be bfloat16 or float16, got ", to_string(options.compute_dtype));
}

ContextSizeError::ContextSizeError(int64_t context_size, const ModelFolder& folder)
    : Error(concat("context_size ", context_size, " is more than the model has"),
            concat(folder.path, " holds at most ",
                   counted(folder.config.max_position_embeddings, "token"),
                   " (max_position_embeddings)")),
      allowed_(NumberLimits<int64_t>{kContextSizeLimits.low, folder.config.max_position_embeddings}
                   .text()) {}

void check_context_size(const EngineOptions& options, const ModelFolder& folder) {
  if (options.context_size <= folder.config.max_position_embeddings) return;
  throw ContextSizeError(options.context_size, folder);
}

ModelFolder read_model_folder(const EngineOptions& options) {
  validate(options);
  ModelFolder folder = read_model_folder(resolve_model_folder(options.model, options.cache_folder),
                                         options.allow_unknown_config);
  check_context_size(options, folder);
  return folder;
}

void validate(const SamplingParams& params) {
  check_limits("temperature", params.temperature, kTemperatureLimits);
  check_limits("top_k", params.top_k, kTopKLimits);
  check_limits("top_p", params.top_p, kTopPLimits);
  check_limits("min_p", params.min_p, kMinPLimits);
  check_limits("repetition_penalty", params.repetition_penalty, kRepetitionPenaltyLimits);
  check_limits("presence_penalty", params.presence_penalty, kOccurrencePenaltyLimits);
  check_limits("frequency_penalty", params.frequency_penalty, kOccurrencePenaltyLimits);
  check_limits("repeat_last_n", params.penalty_window, kPenaltyWindowLimits);
  check_limits("max_tokens", params.max_tokens, kMaxTokensLimits);
  for (const std::string& stop : params.stop) CHECK(!stop.empty(), "a stop string is empty");
}

bool has_penalty(const SamplingParams& params) {
  return params.repetition_penalty != 1.0 || params.frequency_penalty != 0.0 ||
         params.presence_penalty != 0.0;
}

SamplingParams default_sampling(const GenerationConfig& generation) {
  SamplingParams params;
  if (generation.do_sample.value_or(false)) {
    params.temperature = generation.temperature.value_or(1.0);
    params.top_k = generation.top_k.value_or(0);
    params.top_p = generation.top_p.value_or(1.0);
    params.min_p = generation.min_p.value_or(0.0);
  }
  params.repetition_penalty = generation.repetition_penalty.value_or(1.0);
  return params;
}

}  // namespace tessera
