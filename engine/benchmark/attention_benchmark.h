// Timing attention against standard attention and against what the device can do at best.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/benchmark/attention_inputs.h"
#include "engine/benchmark/matmul_rate.h"
#include "engine/options.h"
#include "kernels/backend.h"

namespace tessera {

struct AttentionBenchmarkOptions {
  EngineOptions device;  // device, cuda_index, compute_dtype, num_threads; the rest is not read
  AttentionHeads heads;
  PageLayout layout;
  bool time_standard = true;
  int64_t repetitions = 15;  // 0: run and check only
};

// One way of computing a case.
struct AttentionTiming {
  std::string problem;          // why there is none, then the rest is empty
  std::vector<double> seconds;  // of one launch, per repetition
  size_t scratch_bytes = 0;     // memory beyond queries, keys, values and outputs
  double largest_error = 0.0;   // of the rows that were checked; see AttentionBenchmark::tolerance
};

struct AttentionResult {
  AttentionCase attention_case;
  double flops = 0.0;     // see count_flops
  double kv_bytes = 0.0;  // see count_kv_bytes
  AttentionTiming paged;
  AttentionTiming standard;
};

class AttentionBenchmark {
 public:
  // Throws Error: no such device.
  explicit AttentionBenchmark(const AttentionBenchmarkOptions& options);
  ~AttentionBenchmark();

  std::string device_description() const { return device_.description(); }
  DeviceType device() const { return device_.type(); }
  DType dtype() const { return operations_.activation_dtype(); }
  // From now on the device asks; see Device::set_stop_question.
  void set_stop_question(StopQuestion should_stop) {
    device_.set_stop_question(std::move(should_stop));
  }

  // The device's limits: floating-point operations and bytes read per second.
  double matmul_rate() { return measure_matmul_rate(operations_, *measurement_); }
  double read_bandwidth() { return measurement_->read_bandwidth(); }

  // Runs one case and compares sampled rows with an exact computation, then times it. Throws Error
  // naming the row and the numbers when a result is wrong: a wrong result is not timed.
  AttentionResult run(const AttentionCase& attention_case);

  // Most that ||row - exact|| / ||exact|| may be. Rounding a probability or an output to the
  // activation type makes 0.4 unit roundoffs of it, and every further rounding as much.
  double tolerance() const;

 private:
  AttentionTiming time_paged(const AttentionInputs& inputs);
  AttentionTiming time_standard(const AttentionInputs& inputs);
  // The largest error over sampled rows of inputs.out().
  double check(const AttentionInputs& inputs, bool standard) const;
  // Seconds of one launch(set), sets in turn.
  std::vector<double> time_launches(const AttentionInputs& inputs,
                                    const std::function<void(int64_t set)>& launch);

  AttentionBenchmarkOptions options_;
  std::unique_ptr<Backend> backend_;
  Device& device_;
  Operations& operations_;
  std::unique_ptr<DeviceMeasurement> measurement_;
  NormalPool pool_;
  AttentionCase case_;  // the one that run() is at
};

}  // namespace tessera
