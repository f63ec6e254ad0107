// Timing attention against standard attention and against what the device can do at best.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/benchmark/attention_case.h"
#include "engine/options.h"
#include "kernels/tensor/device_id.h"
#include "kernels/tensor/stopped.h"

namespace tessera {

struct AttentionBenchmarkOptions {
  // What says where and in which number formats to compute, and by which kernels: device,
  // cuda_index, compute_dtype, fp8_attention, portable_kernels, batch_invariant, num_threads. The
  // rest is not read.
  EngineOptions device;
  AttentionHeads heads;
  PageLayout layout;
  bool time_standard = true;
  int64_t repetitions = 15;  // 0: run and check only
};

// One way of computing a case.
struct AttentionTiming {
  std::string problem;          // why there is no timing; the rest is then empty
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

  std::string device_description() const;
  DeviceType device() const;
  // Of queries and outputs, and of keys and values unless the layout says otherwise.
  DType dtype() const;
  // From now on the device asks should_stop; see Device::set_stop_question.
  void set_stop_question(StopQuestion should_stop);

  // The device's limits: floating-point operations and bytes read per second.
  double matmul_rate();
  double read_bandwidth();

  // Runs one case and compares sampled rows with an exact computation, then times it. Throws Error
  // naming the row and the numbers when a result is wrong: a wrong result is not timed.
  AttentionResult run(const AttentionCase& attention_case);

  // The most that ||row - exact|| / ||exact|| may be. Rounding a probability or an output to the
  // activation type adds 0.4 unit roundoffs, and so does every further rounding.
  double tolerance() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tessera
