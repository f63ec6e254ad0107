#include "kernels/argument_check.h"

namespace tessera {

void ArgumentCheck::matrix(std::string_view name, const WeightMatrix& matrix) const {
  CHECK(matrix.format == WeightFormat::kDense, operation_, ": ", name, " is in format ",
        to_string(matrix.format), ", expected ", to_string(WeightFormat::kDense));
  rank(name, matrix.data, 2);
  shape(name, matrix.data, {matrix.out_features, matrix.in_features});
}

void ArgumentCheck::product(std::string_view out_name, const Tensor& out, const Tensor& x,
                            const WeightMatrix& weight) const {
  rank("x", x, 2);
  matrix("weight", weight);
  (*this)("x", x, activation_, x.shape);
  shape("weight", weight.data, {weight.out_features, x.dim(1)});
  shape(out_name, out, {x.dim(0), weight.out_features});
  if (weight.bias.shape.rank() > 0) {
    (*this)("bias", weight.bias, DType::kFloat32, {weight.out_features});
  }
}

void ArgumentCheck::pages(const KvPages& pages) const {
  rank("key pages", pages.keys, 4);
  const DType dtype = pages.is_fp8() ? DType::kFloat8E4M3 : activation_;
  (*this)("key pages", pages.keys, dtype, pages.keys.shape);
  (*this)("value pages", pages.values, dtype, pages.keys.shape);
  if (!pages.is_fp8()) return;
  (*this)("key scales", pages.key_scales, DType::kFloat32, {pages.num_kv_heads()});
  (*this)("value scales", pages.value_scales, DType::kFloat32, {pages.num_kv_heads()});
}

void ArgumentCheck::rope(const RopeStoreKvParams& params) const {
  pages(params.pages);
  rank("query", params.query, 3);
  const int64_t num_tokens = params.query.dim(0);
  const int64_t num_heads = params.query.dim(1);
  const int64_t head_dim = params.pages.head_dim();
  (*this)("query", params.query, activation_, {num_tokens, num_heads, head_dim});
  (*this)("qkv", params.qkv, activation_,
          {num_tokens, (num_heads + 2 * params.pages.num_kv_heads()) * head_dim});
  (*this)("positions", params.positions, DType::kInt32, {num_tokens});
  (*this)("kv_slots", params.kv_slots, DType::kInt32, {num_tokens});
  (*this)("rope_table", params.rope_table, DType::kFloat32, {2, head_dim / 2});
  if (params.qk_norm_kind != QkNorm::kNone) {
    (*this)("qk_norm", params.qk_norm, DType::kFloat32,
            {params.query_norm_size() + params.key_norm_size()});
  } else {
    CHECK(params.qk_norm.shape.rank() == 0, operation_, ": qk_norm has shape ",
          params.qk_norm.shape, ", expected no norm");
  }
  CHECK(head_dim % 2 == 0, operation_, ": head_dim is ", head_dim, ", expected an even number");
  const QueryScalingSpec& scaling = params.query_scaling;
  CHECK(scaling.beta == 0.0 || scaling.original_max_position_embeddings > 0, operation_,
        ": queries are scaled by their position in contexts of ",
        scaling.original_max_position_embeddings, " tokens");
}

}  // namespace tessera
