// The sizes that a caller asks for, and the limits of every step that are made of them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/tensor/dtype.h"

namespace tessera {

// A GPU computes tokens faster when a step has more of them (8B and 32k on an H200: 0.8 % from
// 2,048 to 4,096, 1.0 % to 8,192, 0.5 % to 16,384), and needs memory for these (8B: 0.5 GiB for
// 4,096, 1.1 for 8,192, 2.1 for 16,384). Where there is little, steps have the smaller number. On a
// CPU a step of 2,048 tokens takes seconds, and progress is told only between steps; with 512 it is
// told four times as often, and prompts take 5 % longer.
inline constexpr int64_t kCudaPrefillChunk = 8192;
inline constexpr int64_t kCudaSmallPrefillChunk = 4096;
inline constexpr int64_t kCpuPrefillChunk = 2048;

// While sequences wait for their next token, steps have fewer tokens. So the sequences are served
// sooner, and prompts are computed in the many steps that answers need anyway, in which a GPU
// otherwise waits for its memory.
inline constexpr int64_t kCudaTokensBesideDecodes = 512;
inline constexpr int64_t kCpuTokensBesideDecodes = 320;

// Sequences that run at the same time where the caller leaves it to the device, if memory allows.
inline constexpr int64_t kCudaMaxSequences = 1024;
inline constexpr int64_t kCpuMaxSequences = 64;

// How many tokens of each of many sequences penalties can always list. They look at all tokens by
// default. When the sequences of a step have more, the oldest go first.
inline constexpr int64_t kPenalizedTokensOfMany = 1024;

// Tokens of a step that has drafts among them (serving/prompt_lookup.h), of all its sequences: as
// many as kernels for few tokens take.
inline constexpr int64_t kDraftedStepTokens = 8;

struct WantedSizes {
  int64_t context_size = 0;   // tokens of a sequence; 0: as many as the model has and memory allows
  int64_t max_sequences = 1;  // running at the same time; 0: as many as suit the device
  int64_t page_size = 64;     // tokens per KV page
  int64_t prefill_chunk = 0;  // prompt tokens of a step; 0: a number above
  int64_t max_pages = 0;      // KV pages, but enough for one sequence; 0: as memory allows
  KvDType kv_dtype = KvDType::kActivation;
  bool has_drafts = false;  // steps may have drafts
};

struct StepLimits {
  int64_t max_tokens = 0;     // query tokens of a step
  int64_t max_sequences = 0;  // sequences of a step, and so running at the same time
  int64_t context_size = 0;   // tokens of a sequence, prompt and answer together
  // Tokens of a step in which some sequence decodes; at least a quarter of them is for prompts,
  // however many sequences decode. 0: max_tokens.
  int64_t max_tokens_beside_decodes = 0;
  // Tokens that the penalties of a step may list; 0: no limit.
  int64_t max_penalized_tokens = 0;
  KvDType kv_dtype = KvDType::kActivation;  // what is attended to
  // Tokens of a step that has drafts among them; 0: none has.
  int64_t max_drafted_tokens = 0;

  // Tokens that a step draws: one of each sequence, and in one with drafts one behind each token.
  int64_t max_draws() const { return std::max(max_sequences, max_drafted_tokens); }
};

}  // namespace tessera
