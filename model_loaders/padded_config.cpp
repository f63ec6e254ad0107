#include "model_loaders/padded_config.h"

#include "kernels/tensor/check.h"

namespace tessera {
namespace {

void check_size(const char* name, int64_t own, int64_t padded) {
  CHECK(padded >= own, name, " ", own, " cannot become ", padded);
}

}  // namespace

ModelConfig padded_config(const ModelConfig& config, const PaddableSizes& sizes) {
  const PaddableSizes own = config.sizes();
  if (sizes == own) return config;
  CHECK(!config.stored, "a model that is filled up with zeros cannot be filled up again");
  check_size("hidden_size", own.hidden_size, sizes.hidden_size);
  check_size("intermediate_size", own.intermediate_size, sizes.intermediate_size);
  check_size("num_attention_heads", own.num_heads, sizes.num_heads);
  check_size("head_dim", own.head_dim, sizes.head_dim);
  CHECK(sizes.num_heads % config.num_kv_heads == 0, "num_attention_heads ", sizes.num_heads,
        " is no multiple of num_key_value_heads ", config.num_kv_heads);
  CHECK(sizes.head_dim == own.head_dim || config.block.qk_norm != QkNorm::kLayerNormPerHead,
        "head_dim ", own.head_dim, " cannot become ", sizes.head_dim,
        ": the LayerNorm of each head takes a mean over it");
  CHECK(sizes.hidden_size == own.hidden_size || config.block.norm == NormKind::kRmsNorm,
        "hidden_size ", own.hidden_size, " cannot become ", sizes.hidden_size,
        ": LayerNorm takes a mean over it");
  ModelConfig padded = config;
  padded.stored = own;
  padded.hidden_size = sizes.hidden_size;
  padded.intermediate_size = sizes.intermediate_size;
  padded.num_heads = sizes.num_heads;
  padded.head_dim = sizes.head_dim;
  padded.rotary.dim = config.rotary_dim();
  padded.block.attention_scale = attention_scale(config.block, own.head_dim);
  padded.rms_norm_eps *=
      static_cast<double>(own.hidden_size) / static_cast<double>(sizes.hidden_size);
  return padded;
}

}  // namespace tessera
