// Which steps are launched as a whole.
#include "engine/model/recorded_steps.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <stdexcept>
#include <vector>

namespace tessera {
namespace {

// Records, if it may, and computes nothing.
class RecordingDevice final : public Device {
 public:
  explicit RecordingDevice(bool records) : Device(DeviceType::kCpu), records_(records) {}

  std::string description() const override { return "a device of a test"; }
  bool needs_warm_up() const override { return false; }
  bool is_asynchronous() const override { return true; }
  void set_stop_question(StopQuestion) override {}
  DeviceMemory memory() const override { return {}; }
  Buffer allocate(size_t, std::string_view) override { return {}; }
  void synchronize() override {}
  std::unique_ptr<Recording> record(const std::function<void()>& operations) override {
    if (!records_) return nullptr;
    operations();
    return std::make_unique<CountedRecording>(num_launches);
  }

  int num_launches = 0;  // of recordings

 private:
  class CountedRecording final : public Recording {
   public:
    explicit CountedRecording(int& num_launches) : num_launches_(num_launches) {}
    void launch() override { ++num_launches_; }

   private:
    int& num_launches_;
  };

  void upload_impl(const Tensor&, const Tensor&) override {}
  void upload_parts_impl(std::span<const UploadPart>, const ReadPart&, const OnPartRead&) override {
  }
  void download_impl(const Tensor&, const Tensor&) override {}
  void start_download_impl(size_t, const Tensor&) override {}
  void finish_download_impl(size_t, const Tensor&) override {}

  bool records_;
};

class RecordedStepsTest : public testing::Test {
 protected:
  // A step of so many sequences, whose longest has so many tokens, in tables of `pages` pages.
  ForwardBatch decodes(int64_t num_sequences, int64_t longest, int64_t pages) {
    const auto view = [&](const Shape& shape) {
      return Tensor{words_.data(), DType::kInt32, DeviceType::kCpu, shape};
    };
    ForwardBatch batch;
    batch.token_ids = batch.positions = batch.kv_slots = batch.sampled_rows = view({num_sequences});
    batch.attention.query_starts = view({num_sequences + 1});
    batch.attention.context_lengths = view({num_sequences});
    batch.attention.block_tables = view({num_sequences, pages});
    batch.attention.num_sequences = batch.attention.num_decodes = num_sequences;
    batch.attention.max_query_length = 1;
    batch.attention.max_context_length = longest;
    batch.attention.num_decode_keys = longest * num_sequences;
    return batch;
  }
  // How often operations were called and recordings launched meanwhile.
  std::array<int, 2> run(RecordedSteps& steps, const ForwardBatch& batch,
                         RecordingDevice& device) const {
    int calls = 0;
    const int before = device.num_launches;
    steps.run(batch, [&] { ++calls; });
    return {calls, device.num_launches - before};
  }

  static void move(Tensor& tensor) { tensor.data = tensor.as<int32_t>() + 1; }

  const std::array<int, 2> called_ = {1, 0};
  const std::array<int, 2> recorded_ = {1, 1};
  const std::array<int, 2> launched_ = {0, 1};

 private:
  std::vector<int32_t> words_ = std::vector<int32_t>(64);
};

TEST_F(RecordedStepsTest, AStepIsRecordedTheThirdTime) {
  RecordingDevice device(true);
  RecordedSteps steps(device);
  EXPECT_EQ(run(steps, decodes(4, 100, 2), device), called_);
  EXPECT_EQ(run(steps, decodes(4, 101, 2), device), called_);
  EXPECT_EQ(run(steps, decodes(4, 102, 2), device), recorded_);
  EXPECT_EQ(run(steps, decodes(4, 103, 2), device), launched_);
  EXPECT_EQ(run(steps, decodes(4, 104, 2), device), launched_);
}

TEST_F(RecordedStepsTest, WhateverTheHostPassesOnIsPartOfTheForm) {
  const std::vector<std::function<void(ForwardBatch&)>> changes = {
      [](ForwardBatch& batch) { move(batch.token_ids); },
      [](ForwardBatch& batch) { move(batch.positions); },
      [](ForwardBatch& batch) { move(batch.kv_slots); },
      [](ForwardBatch& batch) { move(batch.sampled_rows); },
      [](ForwardBatch& batch) { move(batch.attention.query_starts); },
      [](ForwardBatch& batch) { move(batch.attention.context_lengths); },
      [](ForwardBatch& batch) { move(batch.attention.block_tables); },
      [](ForwardBatch& batch) { batch.attention.max_decode_query_length = 2; },
      [](ForwardBatch& batch) { batch.attention.max_query_length = 2; },
      [](ForwardBatch& batch) { batch.attention.shared.group_starts = batch.positions; },
      [](ForwardBatch& batch) { batch.attention.shared.lengths = batch.positions; },
      [](ForwardBatch& batch) { batch.attention.shared.own_begins = batch.positions; },
      [](ForwardBatch& batch) { batch.attention.shared.num_groups = 1; },
      [](ForwardBatch& batch) { batch.attention.shared.spared_tokens = 64; }};
  RecordingDevice device(true);
  RecordedSteps steps(device);
  for (int i = 0; i < 3; ++i) run(steps, decodes(4, 100, 2), device);
  EXPECT_EQ(run(steps, decodes(5, 100, 2), device), called_) << "a sequence more";
  EXPECT_EQ(run(steps, decodes(4, 129, 3), device), called_) << "wider block tables";
  for (size_t i = 0; i < changes.size(); ++i) {
    ForwardBatch changed = decodes(4, 100, 2);
    changes[i](changed);
    EXPECT_EQ(run(steps, changed, device), called_) << "change " << i;
    EXPECT_EQ(run(steps, decodes(4, 100, 2), device), launched_) << "after change " << i;
  }
}

TEST_F(RecordedStepsTest, WhatWasNotRunForLongIsForgotten) {
  RecordingDevice device(true);
  RecordedSteps steps(device);
  for (int64_t form = 1; form <= 16; ++form) {
    for (int i = 0; i < 3; ++i) run(steps, decodes(form, 100, 2), device);
  }
  EXPECT_EQ(run(steps, decodes(1, 100, 2), device), launched_) << "sixteen forms are kept";
  EXPECT_EQ(run(steps, decodes(17, 100, 2), device), called_);
  EXPECT_EQ(run(steps, decodes(1, 100, 2), device), launched_) << "not the oldest any more";
  EXPECT_EQ(run(steps, decodes(2, 100, 2), device), called_);
}

TEST_F(RecordedStepsTest, AFormThatCouldNotBeRecordedIsLaunched) {
  RecordingDevice device(true);
  RecordedSteps steps(device);
  for (int i = 0; i < 2; ++i) run(steps, decodes(4, 100, 2), device);
  const auto fail = [] { throw std::runtime_error("while it was recorded"); };
  EXPECT_THROW(steps.run(decodes(4, 100, 2), fail), std::runtime_error);
  EXPECT_EQ(run(steps, decodes(4, 100, 2), device), called_);
}

TEST_F(RecordedStepsTest, PromptsAreNotRecorded) {
  RecordingDevice device(true);
  RecordedSteps steps(device);
  ForwardBatch beside_prompt = decodes(4, 100, 2);
  beside_prompt.attention.num_decodes = 3;
  ForwardBatch short_prompt = decodes(4, 100, 2);
  short_prompt.sampled_rows = short_prompt.sampled_rows.slice(0, 1);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(run(steps, beside_prompt, device), called_);
    EXPECT_EQ(run(steps, short_prompt, device), called_) << "only its last token is sampled";
  }
}

TEST_F(RecordedStepsTest, OperationsAreCalledWhereTheDeviceDoesNotRecord) {
  RecordingDevice device(false);
  RecordedSteps steps(device);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(run(steps, decodes(4, 100, 2), device), called_);
}

}  // namespace
}  // namespace tessera
