// Steps of the same form, which the host launches as a whole.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>

#include "engine/model/forward_batch.h"
#include "kernels/device.h"

namespace tessera {

// Launched one by one, the operations of a small model's step take the host as long as the GPU, or
// longer, and even where the GPU is slower it waits between some of them: a step of 128 sequences
// of an 8B model takes 1.4 % longer than as a whole (docs/experiments/between-steps.md). From step
// to step decodes change nothing that the host passes to an operation, until a sequence joins or
// leaves or the block tables get wider. So a step whose form was there before is recorded, where
// the device can, and from then on launched as a whole.
class RecordedSteps {
 public:
  explicit RecordedSteps(Device& device) : device_(device) {}

  // The effect of launch(), which calls a step's operations. Of a step that has decodes alone, all
  // of whose tokens are sampled, it passes them nothing but the batch's tensors, what the host
  // knows of them without the lengths of contexts, and tensors that are the same in every step;
  // there is no stop question then on a device that records. Throws what launch() throws.
  void run(const ForwardBatch& batch, const std::function<void()>& launch);

 private:
  // What the host passes to operations.
  struct Form {
    Tensor token_ids;
    Tensor positions;
    Tensor kv_slots;
    Tensor sampled_rows;
    AttentionBatch attention;

    friend bool operator==(const Form&, const Form&) = default;
  };
  struct Step {
    Form form;
    int64_t num_runs = 0;
    std::unique_ptr<Recording> recording;  // null: none
  };
  // Recording takes the host as long as launching once or twice (0.3 to 3.6 ms on an H200), so a
  // form that comes but twice is not worth it. Where it fails it is not tried again.
  static constexpr int64_t kRecordedRun = 3;
  static constexpr size_t kMaxSteps = 16;

  static Form form_of(const ForwardBatch& batch);
  Step& find(const Form& form);

  Device& device_;
  std::deque<Step> steps_;  // the last that were run, the latest first
};

}  // namespace tessera
