// How the memory of the device is divided before the first token.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "engine/model/step_limits.h"

namespace tessera {

struct MemoryPlan {
  size_t weights_bytes = 0;
  size_t kv_bytes_per_token = 0;  // all layers, keys and values
  size_t kv_bytes = 0;            // num_pages pages, which all sequences share
  size_t activation_bytes = 0;    // activations, logits, step inputs, attention scratch
  size_t free_bytes = 0;          // on the device before loading
  size_t used_bytes = 0;          // then: by other processes, and by a GPU's driver for this one
  StepLimits limits;
  int64_t page_size = 0;  // tokens
  int64_t num_pages = 0;

  size_t total_bytes() const { return weights_bytes + kv_bytes + activation_bytes; }
  // What weights, activations and the reserve leave.
  size_t unplanned_bytes() const;
  // Whether all of it and a reserve are free.
  bool fits() const;
  // Whether it fits, and activations take one of `num_parts` equal parts of the memory beside the
  // weights, or less.
  bool fits_with_activations_in_one_of(size_t num_parts) const;
  // A small table for people: weights, KV, activations, free, used.
  std::string table() const;
};

}  // namespace tessera
