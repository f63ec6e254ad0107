// What a caller chooses: how to load a model and how to sample. Plain values with defaults.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/tensor/dtype.h"
#include "model_loaders/generation_config.h"
#include "model_loaders/model_folder.h"

namespace tessera {

// What the options' numbers may be; those that generation_config.json also holds are stated there.
inline constexpr NumberLimits<int64_t> kContextSizeLimits = {0, int64_t{1} << 30};
inline constexpr NumberLimits<int64_t> kMaxSequencesLimits = {1, 4096};
inline constexpr NumberLimits<int64_t> kPageSizeLimits = {16, 256, Allowed::kPowersOfTwo};
inline constexpr NumberLimits<int64_t> kPrefillChunkLimits = {0, 65536};
inline constexpr NumberLimits<int64_t> kThreadsLimits = {0, 1024};
inline constexpr NumberLimits<double> kOccurrencePenaltyLimits = {-2.0, 2.0};
inline constexpr NumberLimits<int64_t> kPenaltyWindowLimits = {0, int64_t{1} << 30};
inline constexpr NumberLimits<uint64_t> kSeedLimits = {0, UINT64_MAX};
inline constexpr NumberLimits<int64_t> kMaxTokensLimits = {0, int64_t{1} << 30};

enum class DeviceChoice : uint8_t { kAuto, kCpu, kCuda };

// Whether the device is given the next decode step before the host has seen the last one's tokens,
// so that it need not wait for the host in between.
enum class RunAhead : uint8_t {
  kWhereItHelps,  // on devices that compute while the host does something else
  kAlways,        // for tests
  kNever,
};

// A GPU computes more tokens at a time faster (8B and 32k on an H200: 0.8 % from 2,048 to 4,096)
// and holds 0.2 GiB more for them. On a CPU a step of 2,048 takes seconds, between which progress
// is told; 512 tell it four times as often and take 5 % longer.
inline constexpr int64_t kCudaPrefillChunk = 4096;
inline constexpr int64_t kCpuPrefillChunk = 2048;

struct EngineOptions {
  std::string model;         // folder, or org/name[@revision] in the Hugging Face cache
  std::string cache_folder;  // the Hugging Face cache, for names; "" when there is none
  DeviceChoice device = DeviceChoice::kAuto;
  int cuda_index = 0;
  DType compute_dtype = DType::kBFloat16;           // on CUDA: kBFloat16 or kFloat16
  KernelChoice attention = KernelChoice::kFastest;  // on CUDA
  int num_threads = 0;                              // on the CPU; 0: one per physical core
  int64_t context_size = 0;            // tokens a sequence may hold; 0: the model's maximum,
                                       // less when memory is short
  int64_t max_sequences = 1;           // sequences that run at the same time
  int64_t page_size = 64;              // tokens per KV page
  int64_t prefill_chunk = 0;           // prompt tokens of one step; 0: kCudaPrefillChunk or
                                       // kCpuPrefillChunk
  std::string chat_template;           // "": the folder's own
  bool allow_unknown_config = false;   // config.json keys that are not understood: warn only
  bool allow_unknown_weights = false;  // tensors that no weight is made of: warn only
  bool check_weights = false;          // look for NaN and infinity while loading
  RunAhead run_ahead = RunAhead::kWhereItHelps;
};

// Throws Error naming the field, its value and the allowed range.
void validate(const EngineOptions& options);

// The options ask for a longer context than the model has, however much memory there is.
class ContextSizeError : public Error {
 public:
  ContextSizeError(int64_t context_size, const ModelFolder& folder);

  // What follows "must be".
  const std::string& allowed() const { return allowed_; }

 private:
  std::string allowed_;
};

// Throws ContextSizeError.
void check_context_size(const EngineOptions& options, const ModelFolder& folder);

// The folder that the options name, once the options themselves are valid. Throws Error with the
// path and the reason, ContextSizeError when the model is too short for them.
ModelFolder read_model_folder(const EngineOptions& options);

struct SamplingParams {
  double temperature = 0.0;         // 0: greedy
  int64_t top_k = 0;                // 0: off
  double top_p = 1.0;               // 1: off
  double min_p = 0.0;               // 0: off
  double repetition_penalty = 1.0;  // 1: off
  double presence_penalty = 0.0;    // 0: off
  double frequency_penalty = 0.0;   // 0: off
  int64_t penalty_window = 64;      // last tokens the penalties look at; 0: all
  uint64_t seed = 0;                // same seed, same tokens
  int64_t max_tokens = 0;           // 0: until the context is full
  std::vector<std::string> stop;    // the text ends before the first of these
  bool ignore_eos = false;          // for benchmarks
};

// Throws Error naming the field, its value and the allowed range.
void validate(const SamplingParams& params);

// Whether a token's logits depend on the tokens before it otherwise than through the model.
bool has_penalty(const SamplingParams& params);

// SamplingParams as the model's authors suggest in generation_config.json: greedy unless do_sample.
SamplingParams default_sampling(const GenerationConfig& generation);

}  // namespace tessera
