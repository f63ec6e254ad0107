#include "engine/benchmark/attention_benchmark.h"

#include <algorithm>
#include <cmath>

#include "engine/benchmark/attention_inputs.h"
#include "engine/benchmark/matmul_rate.h"
#include "engine/benchmark/normal_pool.h"
#include "engine/benchmark/rest.h"
#include "engine/make_backend.h"
#include "kernels/device_measurement.h"

namespace tessera {
namespace {

constexpr int kCheckedRows = 64;
// Launches in one timed run: enough that the clock's own error and the gaps before and after do not
// count.
constexpr double kMinSecondsOfRun = 2e-3;
constexpr int64_t kMaxLaunches = 64;

std::vector<AttentionRow> sample_rows(const AttentionHeads& heads, const AttentionCase& shape) {
  // The corners first: the shortest row and the longest.
  std::vector<AttentionRow> rows = {
      {0, 0, 0}, {shape.batch_size - 1, shape.query_length - 1, heads.num_heads - 1}};
  std::mt19937_64 generator(/*seed=*/3);
  const auto below = [&generator](int64_t end) {
    return static_cast<int64_t>(generator() % static_cast<uint64_t>(end));
  };
  while (rows.size() < kCheckedRows) {
    const int64_t sequence = below(shape.batch_size);
    const int64_t query = below(shape.query_length);
    rows.push_back({sequence, query, below(heads.num_heads)});
  }
  return rows;
}

// ||computed - exact|| / ||exact||; NaN when an element is.
double relative_error(const std::vector<double>& computed, const std::vector<double>& exact) {
  double difference = 0.0;
  double size = 0.0;
  for (size_t i = 0; i < exact.size(); ++i) {
    difference += (computed[i] - exact[i]) * (computed[i] - exact[i]);
    size += exact[i] * exact[i];
  }
  return std::sqrt(difference / size);
}

}  // namespace

struct AttentionBenchmark::Impl {
  explicit Impl(const AttentionBenchmarkOptions& given)
      : options(given),
        backend(make_backend(given.device)),
        device(backend->device()),
        operations(backend->operations()),
        measurement(backend->make_measurement()),
        query_pool(operations.activation_dtype(), /*seed=*/1),
        kv_pool(kv_dtype(), /*seed=*/1) {}

  // Of the elements of keys and values.
  DType kv_dtype() const {
    return stored_dtype(options.layout.kv_dtype, operations.activation_dtype());
  }
  double tolerance() const;
  AttentionResult run(const AttentionCase& attention_case);
  AttentionTiming time_paged(const AttentionInputs& inputs);
  AttentionTiming time_standard(const AttentionInputs& inputs);
  // The largest error over sampled rows of inputs.out().
  double check(const AttentionInputs& inputs, bool standard) const;
  // Seconds of one launch(set), sets in turn.
  std::vector<double> time_launches(const AttentionInputs& inputs,
                                    const std::function<void(int64_t set)>& launch);

  AttentionBenchmarkOptions options;
  std::unique_ptr<Backend> backend;
  Device& device;
  Operations& operations;
  std::unique_ptr<DeviceMeasurement> measurement;
  NormalPool query_pool;
  NormalPool kv_pool;
  AttentionCase timed;  // the case that run() is at
};

AttentionBenchmark::AttentionBenchmark(const AttentionBenchmarkOptions& options)
    : impl_(std::make_unique<Impl>(options)) {}

AttentionBenchmark::~AttentionBenchmark() = default;

std::string AttentionBenchmark::device_description() const { return impl_->device.description(); }
DeviceType AttentionBenchmark::device() const { return impl_->device.type(); }
DType AttentionBenchmark::dtype() const { return impl_->operations.activation_dtype(); }
double AttentionBenchmark::tolerance() const { return impl_->tolerance(); }

void AttentionBenchmark::set_stop_question(StopQuestion should_stop) {
  impl_->device.set_stop_question(std::move(should_stop));
}

double AttentionBenchmark::matmul_rate() {
  constexpr int64_t kRepetitions = 15;
  return measure_matmul_rate(impl_->operations, *impl_->measurement, dtype(), kRepetitions);
}

double AttentionBenchmark::read_bandwidth() { return impl_->measurement->read_bandwidth(); }

AttentionResult AttentionBenchmark::run(const AttentionCase& attention_case) {
  return impl_->run(attention_case);
}

double AttentionBenchmark::Impl::tolerance() const {
  // Queries and weights rounded to four bits: 0.02 to 0.06 of a row of normal numbers, of outliers
  // more (docs/experiments/attention.md).
  constexpr double kFp8Error = 0.2;
  if (options.device.fp8_attention && timed.query_length > 1) return kFp8Error;
  constexpr double kFloat32Error = 2e-5;  // of scores, exponentials and sums
  switch (operations.activation_dtype()) {
    case DType::kBFloat16:
      return 2 * 0x1p-8 + kFloat32Error;
    case DType::kFloat16:
      return 2 * 0x1p-11 + kFloat32Error;
    default:
      return kFloat32Error;
  }
}

AttentionResult AttentionBenchmark::Impl::run(const AttentionCase& attention_case) {
  timed = attention_case;
  const AttentionInputs inputs(operations, query_pool, kv_pool, options.heads, attention_case,
                               options.layout);
  AttentionResult result;
  result.attention_case = attention_case;
  result.flops = count_flops(options.heads, attention_case);
  result.kv_bytes = count_kv_bytes(options.heads, attention_case, kv_dtype());
  result.paged = time_paged(inputs);
  result.standard = time_standard(inputs);
  device.synchronize();  // before the tensors are freed
  return result;
}

AttentionTiming AttentionBenchmark::Impl::time_paged(const AttentionInputs& inputs) {
  AttentionTiming timing;
  timing.scratch_bytes = inputs.workspace_bytes();
  const auto launch = [&](int64_t set) { operations.attention(inputs.out(), inputs.params(set)); };
  fill_with_nan(device, inputs.out());
  launch(0);
  timing.largest_error = check(inputs, /*standard=*/false);
  timing.seconds = time_launches(inputs, launch);
  return timing;
}

AttentionTiming AttentionBenchmark::Impl::time_standard(const AttentionInputs& inputs) {
  AttentionTiming timing;
  if (!options.time_standard) {
    timing.problem = "not asked for";
    return timing;
  }
  if (device.type() == DeviceType::kCpu) {
    timing.problem = "only on a GPU";
    return timing;
  }
  if (options.layout.kv_dtype != KvDType::kActivation) {
    timing.problem = "reads no fp8";
    return timing;
  }
  const std::unique_ptr<StandardAttention> standard = measurement->make_standard_attention();
  const size_t scratch_bytes = standard->scratch_bytes(inputs.standard_params(0));
  if (scratch_bytes > device.memory().free_bytes) {
    timing.scratch_bytes = scratch_bytes;
    timing.problem = "out of memory";
    return timing;
  }
  const Buffer buffer = device.allocate(scratch_bytes, "the scores of standard attention");
  const Tensor scratch{buffer.data(),
                       DType::kFloat32,
                       device.id(),
                       {static_cast<int64_t>(scratch_bytes / sizeof(float))}};
  timing.scratch_bytes = scratch_bytes;
  const auto launch = [&](int64_t set) {
    StandardAttentionParams params = inputs.standard_params(set);
    params.scratch = scratch;
    standard->run(inputs.standard_out(), params);
  };
  fill_with_nan(device, inputs.out());
  launch(0);
  timing.largest_error = check(inputs, /*standard=*/true);
  timing.seconds = time_launches(inputs, launch);
  device.synchronize();
  return timing;
}

double AttentionBenchmark::Impl::check(const AttentionInputs& inputs, bool standard) const {
  // Standard attention also rounds its scores, in whose exponentials an error grows.
  const double allowed = standard ? 2 * tolerance() : tolerance();
  double largest = 0.0;
  for (const AttentionRow& row : sample_rows(options.heads, timed)) {
    const double error =
        relative_error(inputs.computed_row(row, standard), inputs.exact_row(row, standard));
    CHECK(error <= allowed, "refusing to time a wrong result: ", standard ? "standard " : "",
          "attention of batch ", timed.batch_size, ", queries ", timed.query_length, ", context ",
          timed.context_length, " has a relative error of ", error, " in sequence ", row.sequence,
          ", query ", row.query, ", head ", row.head, "; at most ", allowed, " is rounding");
    largest = std::max(largest, error);
  }
  return largest;
}

std::vector<double> AttentionBenchmark::Impl::time_launches(
    const AttentionInputs& inputs, const std::function<void(int64_t set)>& launch) {
  if (options.repetitions == 0) return {};
  const double once = measurement->seconds([&] { launch(0); }, 1).front();
  const auto wanted = static_cast<int64_t>(std::ceil(kMinSecondsOfRun / once));
  const int64_t num_sets = inputs.num_sets();
  const int64_t num_launches =
      ceil_divide(std::clamp<int64_t>(wanted, 1, kMaxLaunches), num_sets) * num_sets;
  rest(device);  // so that a case does not depend on the one before
  std::vector<double> seconds = measurement->seconds(
      [&] {
        for (int64_t i = 0; i < num_launches; ++i) launch(i % num_sets);
      },
      options.repetitions);
  for (double& value : seconds) value /= static_cast<double>(num_launches);
  return seconds;
}

}  // namespace tessera
