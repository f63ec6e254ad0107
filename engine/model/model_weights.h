// The weights of a model on the device: their memory, and how they get there from a checkpoint.
#pragma once

#include <map>
#include <vector>

#include "engine/model/decoder_weights.h"
#include "engine/model/weight_reader.h"
#include "kernels/operations.h"
#include "model_loaders/checkpoint.h"
#include "model_loaders/model_config.h"
#include "model_loaders/weight_specs.h"

namespace tessera {

class ModelWeights : public DecoderWeights {
 public:
  // Lays out every tensor the model needs in one buffer of the device. Throws Error when the
  // checkpoint lacks one or has it in another shape. Contents are unspecified until read().
  // `context_length`: as of rope_values().
  ModelWeights(const ModelConfig& config, const Checkpoint& checkpoint, Operations& operations,
               int64_t context_length);

  // Fills the tensors from the same checkpoint, once; see read_weights. Returns the bytes read.
  uint64_t read(const Checkpoint& checkpoint, Device& device, bool check_values,
                const LoadProgress& progress);

  // Bytes of the buffer that the constructor will allocate. Same checks of names and shapes.
  static size_t size_bytes(const ModelConfig& config, const Checkpoint& checkpoint,
                           const Operations& operations);

  // Bytes of weights that computing one token reads: all but embed_tokens, of which it reads a row.
  uint64_t bytes_per_token() const { return bytes_per_token_; }
  size_t size_in_memory() const { return buffer_.size_bytes(); }

 private:
  ModelWeights() = default;
  // Takes every tensor from `arena`, which may be measuring only.
  void lay_out(const ModelConfig& config, const Checkpoint& checkpoint,
               const Operations& operations, Arena& arena);
  // Adds the sources of a weight, which fill `tensor`, to the pieces.
  void add_pieces(const WeightSpec& spec, const Checkpoint& checkpoint, const Tensor& tensor);
  // Puts a weight where its role says.
  void place(const WeightSpec& spec, const Tensor& tensor);

  Buffer buffer_;
  std::map<AxisOrder, std::vector<int64_t>> orders_;  // head_order.h; empty where all stays
  std::vector<WeightPiece> pieces_;  // until read(); they point into the checkpoint and the orders
  uint64_t bytes_per_token_ = 0;
};

}  // namespace tessera
