#include "engine/options.h"

#include "kernels/tensor/check.h"
#include "model_loaders/context_stretch.h"
#include "model_loaders/rope_config.h"

namespace tessera {

// Whatever context a config.json states can be asked for.
static_assert(kContextSizeLimits.high >= kMaxContextTokens);

WantedSizes wanted_sizes(const EngineOptions& options) {
  return {.context_size = options.context_size,
          .max_sequences = options.max_sequences,
          .page_size = options.page_size,
          .prefill_chunk = options.prefill_chunk,
          .max_pages = options.max_pages,
          .kv_dtype = options.kv_dtype,
          .has_drafts = options.prompt_lookup != PromptLookupChoice::kNever};
}

void validate(const EngineOptions& options) {
  CHECK(!options.model.empty(), "no model given");
  check_limits("context_size", options.context_size, kContextSizeLimits);
  check_limits("max_sequences", options.max_sequences, kMaxSequencesLimits);
  check_limits("page_size", options.page_size, kPageSizeLimits);
  check_limits("prefill_chunk", options.prefill_chunk, kPrefillChunkLimits);
  check_limits("max_pages", options.max_pages, kMaxPagesLimits);
  check_limits("num_threads", int64_t{options.num_threads}, kThreadsLimits);
  CHECK(options.cuda_index >= 0, "cuda_index must not be negative, got ", options.cuda_index);
  if (options.fp8_attention && options.kv_dtype != KvDType::kFloat8E4M3) {
    throw Error("attention in float8_e4m3 needs a KV cache of that type",
                "--kv-dtype fp8 makes one");
  }
  if (options.fp8_attention && options.batch_invariant) {
    throw Error(
        "attention in float8_e4m3 depends on how prompts are cut, so it is not batch-invariant",
        "leave out --attention-dtype or --batch-invariant");
  }
  CHECK(options.compute_dtype == DType::kBFloat16 || options.compute_dtype == DType::kFloat16,
        "compute_dtype must be bfloat16 or float16, got ", to_string(options.compute_dtype));
}

ContextSizeError::ContextSizeError(int64_t context_size, const ModelFolder& folder)
    : Error(concat("context_size ", context_size, " is more than the model has"),
            concat(folder.path, " holds at most ",
                   counted(folder.config.max_position_embeddings, "token"),
                   " (max_position_embeddings); --rope-scaling auto goes further")),
      allowed_(NumberLimits<int64_t>{kContextSizeLimits.low, folder.config.max_position_embeddings}
                   .text()) {}

void check_context_size(const EngineOptions& options, const ModelFolder& folder) {
  if (options.context_size <= folder.config.max_position_embeddings) return;
  throw ContextSizeError(options.context_size, folder);
}

ModelFolder read_model_folder(const EngineOptions& options) {
  validate(options);
  std::vector<std::string> warnings;
  const std::string path = resolve_model_folder(options.model, options.cache_folder, warnings);
  ModelFolder folder = read_model_folder(path, options.allow_unknown_config, options.tokenizer);
  folder.warnings.insert(folder.warnings.begin(), warnings.begin(), warnings.end());
  if (options.rope_scaling == RopeScalingChoice::kAuto) {
    stretch_context(folder, options.context_size);
  }
  check_context_size(options, folder);
  return folder;
}

}  // namespace tessera
