// Every weight of a model in one list: the roles that its block has, in the shapes that its sizes
// give, under the names of its family.
//
// Whoever must know the weights walks this list: the check of a checkpoint, the layout in memory,
// the reader, byte counts, the writer of random models. Nothing else states a name or a shape.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/tensor/shape.h"
#include "model_loaders/model_config.h"
#include "model_loaders/weight_role.h"

namespace tessera {

// The dimension that several devices divide among themselves.
enum class ShardAxis : uint8_t {
  kNone,     // each has all of it
  kRows,     // of each source, so that a device has queries, keys and values of the same heads
  kColumns,  // each has part of the input, and the products are summed
};

// The order of rows or columns in memory (head_order.h).
enum class AxisOrder : uint8_t {
  kAsStored,
  kHeads,         // each head in head_order()
  kQueries,       // the query heads of each KV head in query_order()
  kHidden,        // zeros behind hidden_size
  kIntermediate,  // zeros behind intermediate_size
};

// So many rows of a source, one after the other, and their order.
struct OrderedRows {
  int64_t count = 0;
  AxisOrder order = AxisOrder::kAsStored;

  bool operator==(const OrderedRows&) const = default;
};

// What becomes of a tensor while it is read, so that nobody else has to know how the family keeps
// it.
struct WeightTransform {
  std::vector<OrderedRows> rows;  // all of the source; of a vector, elements
  AxisOrder columns = AxisOrder::kAsStored;
  // Vectors only, in float32: (value + addend) * factor.
  double addend = 0.0;
  double factor = 1.0;

  bool changes_values() const { return addend != 0.0 || factor != 1.0; }
};

// A tensor of the checkpoint, as it must be.
struct WeightSource {
  std::string name;
  Shape shape;
  std::string shape_fields;  // "[vocab_size, hidden_size]": the fields that give the shape
  WeightTransform transform = {};
};

struct WeightSpec {
  WeightRole role = WeightRole::kEmbedTokens;
  std::optional<int64_t> layer;       // none: of the whole model
  std::optional<int64_t> expert;      // none: every token takes it
  std::vector<WeightSource> sources;  // the rows of one below those of the other
  Shape shape;  // of all sources together, in memory; vectors may be matrices in the checkpoint
  ShardAxis shard_axis = ShardAxis::kNone;
};

// The role under whose name the checkpoint has a weight.
WeightRole stored_role(WeightRole role, const ModelConfig& config);

// In the order of the forward pass. No output matrix when tie_word_embeddings is true. Throws Error
// when the family has no name for a role that the block has.
std::vector<WeightSpec> weight_specs(const ModelConfig& config);

}  // namespace tessera
