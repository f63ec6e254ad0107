#include "kernels/cuda/attention/widened/prefill.h"

#include <algorithm>
#include <cstddef>

#include "kernels/cuda/attention/widened/pages.h"
#include "kernels/cuda/device/cuda_check.h"

namespace tessera {
namespace {

class WidenedPrefill {
 public:
  WidenedPrefill(const Tensor& out, const AttentionParams& params, const Tensor& scratch,
                 const LaunchPrefill& launch, cudaStream_t stream, int64_t most_bytes);

  void run() const;

 private:
  // KV heads from first_kv_head on, as many as the plan takes at a time or as are left.
  void run_heads(int64_t first_kv_head) const;
  void run_sequences(const Tensor& out, const Tensor& query, int64_t first_kv_head,
                     int64_t num_kv_heads) const;
  // Copies `count` query heads of every row between tensors of from_heads and of to_heads heads.
  void copy_heads(void* to, size_t to_heads, const void* from, size_t from_heads,
                  int64_t count) const;

  int64_t group() const { return params_.query.dim(1) / params_.pages.num_kv_heads(); }
  std::byte* of_head(const Tensor& rows, int64_t head) const {
    return static_cast<std::byte*>(rows.data) +
           static_cast<size_t>(head * rows.dim(2)) * size_of(rows.dtype);
  }
  Tensor carve(size_t offset, DType dtype, const Shape& shape) const {
    return {static_cast<std::byte*>(scratch_.data) + offset, dtype, scratch_.device, shape};
  }

  const Tensor& out_;
  const AttentionParams& params_;
  const Tensor& scratch_;
  const LaunchPrefill& launch_;
  cudaStream_t stream_;
  WideningScratch sizes_;
  WideningPlan plan_;
};

WidenedPrefill::WidenedPrefill(const Tensor& out, const AttentionParams& params,
                               const Tensor& scratch, const LaunchPrefill& launch,
                               cudaStream_t stream, int64_t most_bytes)
    : out_(out), params_(params), scratch_(scratch), launch_(launch), stream_(stream) {
  const KvPages& pages = params.pages;
  const AttentionBatch& batch = params.batch;
  sizes_ = widening_scratch({.max_tokens = params.query.dim(0),
                             .max_sequences = batch.num_sequences - batch.num_decodes,
                             .max_context_length = batch.max_context_length,
                             .num_heads = params.query.dim(1),
                             .num_kv_heads = pages.num_kv_heads(),
                             .head_dim = pages.head_dim()},
                            most_bytes);
  CHECK(scratch.size_bytes() >= static_cast<size_t>(sizes_.total()),
        "attention: the workspace has ", scratch.size_bytes(), " bytes to widen pages, needs ",
        sizes_.total());
  plan_ = plan_widening(sizes_, pages.num_kv_heads(), pages.head_dim(), pages.page_size(),
                        batch.max_context_length);
}

void WidenedPrefill::run() const {
  const int64_t num_kv_heads = params_.pages.num_kv_heads();
  for (int64_t head = 0; head < num_kv_heads; head += plan_.num_kv_heads) run_heads(head);
}

void WidenedPrefill::run_heads(int64_t first_kv_head) const {
  const int64_t all = params_.pages.num_kv_heads();
  const int64_t num_kv_heads = std::min(plan_.num_kv_heads, all - first_kv_head);
  if (num_kv_heads == all) return run_sequences(out_, params_.query, 0, all);

  const int64_t num_heads = num_kv_heads * group();
  const int64_t first_head = first_kv_head * group();
  const Tensor& query = params_.query;
  const Shape shape{query.dim(0), num_heads, query.dim(2)};
  const auto offset = static_cast<size_t>(sizes_.pages + sizes_.tables);
  const Tensor some_query = carve(offset, query.dtype, shape);
  const Tensor some_out = carve(offset + static_cast<size_t>(sizes_.rows), out_.dtype, shape);
  const auto all_heads = static_cast<size_t>(query.dim(1));
  const auto heads = static_cast<size_t>(num_heads);
  copy_heads(some_query.data, heads, of_head(query, first_head), all_heads, num_heads);
  // The rows of decodes are there already, and stay.
  copy_heads(some_out.data, heads, of_head(out_, first_head), all_heads, num_heads);
  run_sequences(some_out, some_query, first_kv_head, num_kv_heads);
  copy_heads(of_head(out_, first_head), all_heads, some_out.data, heads, num_heads);
}

void WidenedPrefill::copy_heads(void* to, size_t to_heads, const void* from, size_t from_heads,
                                int64_t count) const {
  const size_t head_bytes = static_cast<size_t>(out_.dim(2)) * size_of(out_.dtype);
  CUDA_CHECK(cudaMemcpy2DAsync(to, to_heads * head_bytes, from, from_heads * head_bytes,
                               static_cast<size_t>(count) * head_bytes,
                               static_cast<size_t>(out_.dim(0)), cudaMemcpyDeviceToDevice,
                               stream_));
}

void WidenedPrefill::run_sequences(const Tensor& out, const Tensor& query, int64_t first_kv_head,
                                   int64_t num_kv_heads) const {
  const AttentionBatch& batch = params_.batch;
  const KvPages& source = params_.pages;
  for (int64_t begin = batch.num_decodes; begin < batch.num_sequences;
       begin += plan_.num_sequences) {
    const int64_t end = std::min(begin + plan_.num_sequences, batch.num_sequences);
    const int64_t num_pages = (end - begin) * plan_.pages_per_sequence;
    const Shape shape{num_pages, num_kv_heads, source.page_size(), source.head_dim()};
    const auto half = static_cast<size_t>(shape.num_elements()) * size_of(query.dtype);
    AttentionParams part = params_;
    part.query = query;
    part.pages = {carve(0, query.dtype, shape), carve(half, query.dtype, shape)};
    part.batch.query_starts = batch.query_starts.slice(begin, end + 1);
    part.batch.context_lengths = batch.context_lengths.slice(begin, end);
    part.batch.block_tables = carve(static_cast<size_t>(sizes_.pages), DType::kInt32,
                                    {end - begin, plan_.pages_per_sequence});
    part.batch.num_sequences = end - begin;
    part.batch.num_decodes = 0;
    launch_widen_pages({.source = source,
                        .first_kv_head = first_kv_head,
                        .sliding_window = params_.sliding_window,
                        .query_starts = part.batch.query_starts,
                        .context_lengths = part.batch.context_lengths,
                        .block_tables = batch.block_tables.slice(begin, end),
                        .pages = part.pages,
                        .widened_tables = part.batch.block_tables},
                       stream_);
    launch_(out, part);
  }
}

}  // namespace

void launch_widened_prefill(const Tensor& out, const AttentionParams& params, const Tensor& scratch,
                            const LaunchPrefill& launch, cudaStream_t stream, int64_t most_bytes) {
  WidenedPrefill(out, params, scratch, launch, stream, most_bytes).run();
}

}  // namespace tessera
