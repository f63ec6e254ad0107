// What a caller chooses when it loads a model. Plain values with defaults.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/model/step_limits.h"
#include "engine/text/message.h"
#include "kernels/tensor/dtype.h"
#include "model_loaders/model_folder.h"

namespace tessera {

// What the options' numbers may be.
inline constexpr NumberLimits<int64_t> kContextSizeLimits = {0, int64_t{1} << 30};
inline constexpr NumberLimits<int64_t> kMaxSequencesLimits = {0, 4096};
inline constexpr NumberLimits<int64_t> kPageSizeLimits = {16, 256, Allowed::kPowersOfTwo};
inline constexpr NumberLimits<int64_t> kPrefillChunkLimits = {0, 65536};
inline constexpr NumberLimits<int64_t> kMaxPagesLimits = {0, int64_t{1} << 30};
inline constexpr NumberLimits<int64_t> kThreadsLimits = {0, 1024};

enum class DeviceChoice : uint8_t { kAuto, kCpu, kCuda };

// Whether the device is given the next decode step before the host has seen the last one's tokens,
// so that it need not wait for the host in between.
enum class RunAhead : uint8_t {
  kWhereItHelps,  // on devices that compute while the host does something else
  kAlways,        // for tests
  kNever,
};

// Whether answers that repeat their prompt or themselves are drafted from it, so that several
// tokens of a sequence are computed in one step. The tokens are those that would be drawn one by
// one, as far as sums in another order leave the logits the same.
enum class PromptLookupChoice : uint8_t {
  kNever,
  kWhereItPays,
  kAlways,  // for tests
};

// What becomes of a context_size beyond the one that the model was trained for.
enum class RopeScalingChoice : uint8_t {
  kModel,  // it is refused
  kAuto,   // RoPE is stretched for it, and no further: model_loaders/context_stretch.h
};

struct EngineOptions {
  std::string model;         // folder, or org/name[@revision] in the Hugging Face cache
  std::string cache_folder;  // the Hugging Face cache, for names; "" when there is none
  DeviceChoice device = DeviceChoice::kAuto;
  int cuda_index = 0;
  DType compute_dtype = DType::kBFloat16;   // on CUDA: kBFloat16 or kFloat16
  KvDType kv_dtype = KvDType::kActivation;  // of the KV cache
  bool portable_kernels = false;       // on CUDA: only kernels that run on every GPU, also where
                                       // something faster exists: to compare
  bool batch_invariant = false;        // a token comes out the same bit by bit whatever is computed
                                       // beside it, by slower kernels; wins over portable_kernels
  bool fp8_attention = false;          // on Hopper GPUs, over a KV cache of float8_e4m3: prompts'
                                       // attention multiplies in that type, for layers without a
                                       // window or softcap; faster, less exact
  int num_threads = 0;                 // on the CPU; 0: one per physical core
  int64_t context_size = 0;            // tokens a sequence may hold; 0: the model's maximum,
                                       // less when memory is short
  int64_t max_sequences = 1;           // sequences that run at the same time; 0: as many as suit
                                       // the device, hundreds on a GPU
  int64_t page_size = 64;              // tokens per KV page
  int64_t prefill_chunk = 0;           // prompt tokens of one step; 0: what suits the device
  int64_t max_pages = 0;               // KV pages at most, but enough for one sequence; 0: as many
                                       // as sequences can need and memory allows
  std::string tokenizer;               // a file, in the folder or not; "": the folder's own
  std::string chat_template;           // a name or a file; "": the folder's own
  bool allow_unknown_config = false;   // config.json keys that are not understood: warn only
  bool allow_unknown_weights = false;  // tensors that no weight is made of: warn only
  bool check_weights = false;          // look for NaN and infinity while loading
  RunAhead run_ahead = RunAhead::kWhereItHelps;
  bool prefix_cache = true;  // sequences share the KV pages of prompts that begin alike
  PromptLookupChoice prompt_lookup = PromptLookupChoice::kNever;
  RopeScalingChoice rope_scaling = RopeScalingChoice::kModel;
  // Variables of the chat template, the same for every conversation.
  std::vector<TemplateArgument> template_arguments = {};
};

// The sizes among the options.
WantedSizes wanted_sizes(const EngineOptions& options);

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

// The folder that the options name, once the options themselves are valid, with its context
// stretched where they ask for that. Throws Error with the path and the reason, ContextSizeError
// when the model is too short for them.
ModelFolder read_model_folder(const EngineOptions& options);

}  // namespace tessera
