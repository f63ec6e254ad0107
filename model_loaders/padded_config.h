// Models whose weights are filled up with zeros.
//
// A device may have kernels for some sizes alone, or faster ones. A model of other sizes is then
// kept with larger ones: rows and columns of zeros are added to its weights while they are read. It
// computes the same, because zeros add nothing:
//   - An element of a head that is zero in queries and keys leaves their products as they are. In
//     values it leads to an output of zero, which a column of zeros of o_proj drops. So does a
//     query head more of each KV head, whatever its attention yields.
//   - An intermediate feature whose gate and up are zero is zero, and a column of zeros of
//   down_proj
//     drops it.
//   - A feature of the residual stream that is zero in the embedding stays zero: no half adds to
//   it.
//   - RMSNorm divides by the number of elements with zeros. The norm's weights are multiplied by
//   the
//     root of what that makes too little, and its epsilon by the same ratio. Norms of heads have
//     the epsilon of the others: where heads have zeros and hidden_size has not, or the other way
//     round, it weighs up to so much more or less, which shows only where queries or keys are about
//     as small as its root.
#pragma once

#include "model_loaders/model_config.h"

namespace tessera {

// `config` with these sizes, of which none is smaller than its own. Throws Error where zeros would
// change results: LayerNorm subtracts a mean over all elements.
ModelConfig padded_config(const ModelConfig& config, const PaddableSizes& sizes);

}  // namespace tessera
