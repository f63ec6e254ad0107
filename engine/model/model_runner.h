// A model on one device: its weights, its KV pages and the buffers of a step; computes steps there.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/model/kv_cache.h"
#include "engine/model/load_progress.h"
#include "engine/model/memory_plan.h"
#include "engine/model/model_weights.h"
#include "engine/model/recorded_steps.h"
#include "engine/model/step_buffers.h"
#include "engine/model/step_runner.h"
#include "engine/model/transformer.h"
#include "kernels/backend.h"
#include "model_loaders/kv_file.h"

namespace tessera {

class ModelRunner final : public StepRunner {
 public:
  // Takes all the memory that `plan` counts. What weights hold is unspecified until read_weights().
  // Ids at or above num_candidates are never drawn. `config` must outlive the runner. Throws Error
  // when the checkpoint lacks a tensor or memory is short.
  ModelRunner(const ModelConfig& config, const Checkpoint& checkpoint, const MemoryPlan& plan,
              int64_t num_candidates, std::unique_ptr<Backend> backend);
  ~ModelRunner() override;

  // Called once, with the same checkpoint; see ModelWeights::read. Returns the bytes read.
  uint64_t read_weights(const Checkpoint& checkpoint, bool check_values,
                        const LoadProgress& progress);

  // Called once, after read_weights() and warm_up(). Chooses the scales of float8_e4m3 pages: those
  // of the checkpoint if it has any. Otherwise a calibration computes a prompt of fixed tokens with
  // keys and values in the activation type. The scales are chosen so that the largest magnitude of
  // each layer and KV head lies at an eighth of the type's largest number or below: texts may
  // exceed it eightfold before numbers are cut off. Does nothing for other pages. Throws Stopped,
  // or what should_stop throws, when the calibration is to be given up.
  void choose_kv_scales(const Checkpoint& checkpoint, const StopQuestion& should_stop);

  // Runs every operation once on whatever the weights hold, also while another thread reads them.
  // No page holds a sequence yet.
  void warm_up();

  LaunchedTokens launch(std::span<const TokenChunk> step, const StopQuestion& should_stop) override;
  std::vector<DrawnToken> collect(const LaunchedTokens& step) override;

  // Logits of every token of the prompt, float32 [prompt.size(), vocab_size] row-major. The pages
  // hold the prompt. Throws Stopped.
  std::vector<float> prompt_logits(std::span<const TokenId> prompt,
                                   std::span<const int32_t> block_table,
                                   const StopQuestion& should_stop);

  // What files of keys and values have to agree with, and the pages that they fill.
  KvLayout kv_layout() const { return cache_.layout(); }
  const std::vector<float>& kv_scales() const { return cache_.scales(); }
  // See engine/model/kv_transfer.h. Steps that have been launched are waited for.
  void read_kv(const KvFile& file, std::span<const int32_t> pages, const LoadProgress& progress);
  void write_kv(std::span<const int32_t> pages, KvFileWriter& writer,
                const LoadProgress& progress) const;

  Backend& backend() const { return *backend_; }
  // Why small decode steps are not computed by one kernel, for people; empty when they are.
  const std::string& fused_decoder_problem() const { return fused_decoder_problem_; }
  // Whether such steps may have drafts.
  bool drafts_in_one_kernel() const { return transformer_.drafts_in_one_kernel(); }
  uint64_t weight_bytes_per_token() const { return weights_.bytes_per_token(); }
  // Bytes of device memory that the runner holds.
  uint64_t allocated_bytes() const;

 private:
  // Makes the fused decoder, where there can be one; returns fused_decoder_problem().
  std::string use_fused_decoder();
  std::vector<float> calibrated_kv_scales();
  // Whether the device asks, while it computes the step, if anybody wants it.
  bool asks(std::span<const TokenChunk> step) const;
  // Of a step that samples tokens: float32 [num_sampled, vocab_size], in the activations.
  Tensor sampled_logits(const ForwardBatch& batch);
  // Prepares, computes and draws: a step, all but the wait for its tokens.
  LaunchedTokens compute(std::span<const TokenChunk> step);

  const ModelConfig& config_;
  StepLimits limits_;
  int64_t page_size_;
  int64_t num_candidates_;
  std::unique_ptr<Backend> backend_;
  ModelWeights weights_;
  KvCache cache_;
  Buffer step_memory_;
  Arena step_arena_;
  StepBuffers buffers_;
  Transformer transformer_;
  RecordedSteps recorded_steps_;
  std::string fused_decoder_problem_;
  Tensor drawn_;  // tokens of the newest step that drew any
};

}  // namespace tessera
