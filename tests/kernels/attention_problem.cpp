#include "tests/kernels/attention_problem.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/kernels/random_values.h"

namespace tessera {
namespace {

constexpr int32_t kAbsurdPage = 0x3fffffff;
constexpr int64_t kSparePages = 3;
constexpr int64_t kSpareTableEntries = 2;

// Pages on the host, NaN where no token was written.
class HostPages {
 public:
  HostPages(int64_t num_pages, const AttentionSize& size)
      : size_(size),
        values_(static_cast<size_t>(num_pages * size.num_kv_heads * size.page_size * size.head_dim),
                std::numeric_limits<double>::quiet_NaN()) {}

  // tokens: [num_tokens, num_kv_heads, head_dim], token t goes to page pages[t / page_size].
  void write(const std::vector<double>& tokens, const std::vector<int32_t>& pages) {
    const int64_t num_rows = static_cast<int64_t>(tokens.size()) / size_.head_dim;
    for (int64_t i = 0; i < num_rows; ++i) {
      const int64_t token = i / size_.num_kv_heads;
      const int64_t head = i % size_.num_kv_heads;
      const int64_t page = pages[static_cast<size_t>(token / size_.page_size)];
      const int64_t row =
          (page * size_.num_kv_heads + head) * size_.page_size + token % size_.page_size;
      std::copy_n(tokens.begin() + i * size_.head_dim, size_.head_dim,
                  values_.begin() + row * size_.head_dim);
    }
  }

  const std::vector<double>& values() const { return values_; }

 private:
  AttentionSize size_;
  std::vector<double> values_;
};

}  // namespace

AttentionProblem::AttentionProblem(Backend& backend, const AttentionSize& size,
                                   const std::vector<SequenceSize>& sequences, uint64_t seed)
    : backend_(backend), size_(size), sequence_sizes_(sequences) {
  const DType dtype = backend.activation_dtype();
  const auto num_sequences = static_cast<int64_t>(sequences.size());
  RandomValues random(seed);
  const auto first_prefill = std::ranges::find_if(
      sequences, [](const SequenceSize& sequence) { return sequence.query_length != 1; });
  num_decodes_ = first_prefill - sequences.begin();

  int64_t num_pages = kSparePages;
  std::vector<double> query;
  std::vector<int32_t> query_starts = {0}, context_lengths;
  for (const auto& [query_length, context_length] : sequences) {
    const int64_t kv_elements = context_length * size.num_kv_heads * size.head_dim;
    const int64_t query_elements = query_length * size.num_heads * size.head_dim;
    sequences_.push_back({rounded(random.normal(query_elements, size.query_deviation), dtype),
                          rounded(random.normal(kv_elements), dtype),
                          rounded(random.normal(kv_elements), dtype)});
    query.insert(query.end(), sequences_.back().queries.begin(), sequences_.back().queries.end());
    num_tokens_ += query_length;
    num_pages += ceil_divide(context_length, size.page_size);
    query_starts.push_back(static_cast<int32_t>(num_tokens_));
    context_lengths.push_back(static_cast<int32_t>(context_length));
    max_query_length_ = std::max(max_query_length_, query_length);
    max_context_length_ = std::max(max_context_length_, context_length);
  }

  const int64_t table_width = ceil_divide(max_context_length_, size.page_size) + kSpareTableEntries;
  std::vector<int32_t> block_tables(static_cast<size_t>(num_sequences * table_width), kAbsurdPage);
  const std::vector<int32_t> order = random.permutation(num_pages);
  HostPages keys(num_pages, size), values(num_pages, size);
  auto next_page = order.begin();
  for (int64_t s = 0; s < num_sequences; ++s) {
    const auto index = static_cast<size_t>(s);
    const int64_t used = ceil_divide(sequences[index].context_length, size.page_size);
    const std::vector<int32_t> pages(next_page, next_page + used);
    next_page += used;
    keys.write(sequences_[index].keys, pages);
    values.write(sequences_[index].values, pages);
    std::ranges::copy(pages, block_tables.begin() + s * table_width);
  }

  const Shape page_shape{num_pages, size.num_kv_heads, size.page_size, size.head_dim};
  keys_ = to_device(backend, keys.values(), dtype, page_shape);
  values_ = to_device(backend, values.values(), dtype, page_shape);
  query_ = to_device(backend, query, dtype, {num_tokens_, size.num_heads, size.head_dim});
  query_starts_ = to_device(backend, query_starts, {num_sequences + 1});
  context_lengths_ = to_device(backend, context_lengths, {num_sequences});
  block_tables_ = to_device(backend, block_tables, {num_sequences, table_width});
  // The smallest limits that this step keeps, hence the smallest workspace.
  const size_t workspace_bytes =
      backend.attention_workspace_bytes({.max_tokens = num_tokens_,
                                         .max_sequences = num_sequences,
                                         .max_context_length = max_context_length_,
                                         .num_heads = size.num_heads,
                                         .num_kv_heads = size.num_kv_heads,
                                         .head_dim = size.head_dim});
  workspace_ = poisoned(backend, DType::kFloat32,
                        {static_cast<int64_t>(ceil_divide(workspace_bytes, sizeof(float)))});
}

AttentionParams AttentionProblem::params() const {
  return {.query = query_,
          .pages = {keys_.view, values_.view},
          .batch = {.query_starts = query_starts_,
                    .context_lengths = context_lengths_,
                    .block_tables = block_tables_,
                    .num_sequences = static_cast<int64_t>(sequences_.size()),
                    .num_decodes = num_decodes_,
                    .max_query_length = max_query_length_,
                    .max_context_length = max_context_length_},
          .scale = 1.0f / std::sqrt(static_cast<float>(size_.head_dim)),
          .sliding_window = size_.sliding_window,
          .workspace = workspace_};
}

DeviceTensor AttentionProblem::run() const {
  DeviceTensor out = poisoned(backend_, backend_.activation_dtype(), query_.view.shape);
  backend_.attention(out, params());
  return out;
}

void AttentionProblem::check() const {
  SCOPED_TRACE(testing::Message() << size_.num_heads << "/" << size_.num_kv_heads << " heads of "
                                  << size_.head_dim << ", pages of " << size_.page_size
                                  << ", window " << size_.sliding_window);
  const DType dtype = backend_.activation_dtype();
  const DeviceTensor out = run();
  for (size_t s = 0; s < sequences_.size(); ++s) {
    const auto& [query_length, context_length] = sequence_sizes_[s];
    SCOPED_TRACE(testing::Message() << "sequence " << s << ": " << query_length << " queries of "
                                    << context_length << " tokens");
    const ReferenceAttention reference =
        reference_attention(sequences_[s], size_.num_heads, size_.num_kv_heads, size_.head_dim,
                            params().scale, size_.sliding_window);
    int64_t begin = 0;
    for (size_t before = 0; before < s; ++before) begin += sequence_sizes_[before].query_length;
    const Tensor rows = out.view.slice(begin, begin + query_length);
    // A probability is wrong by the error of its score, which is a float32 sum over head_dim of
    // terms that add up to largest_score; 16-bit backends also round it for the tensor cores.
    const double of_score = 2.0 * unit_roundoff(DType::kFloat32) *
                            std::sqrt(static_cast<double>(size_.head_dim)) *
                            (1.0 + reference.largest_score);
    const double of_probability = dtype == DType::kFloat32 ? 0.0 : unit_roundoff(dtype);
    expect_close(to_host(backend_, rows), reference.out, rows.shape,
                 {.out = dtype, .length = context_length, .relative = of_score + of_probability});
  }
}

}  // namespace tessera
