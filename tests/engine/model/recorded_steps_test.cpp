// Which steps are launched as a whole.
#include "engine/model/recorded_steps.h"

#include <gtest/gtest.h>

#include <array>
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

TEST_F(RecordedStepsTest, AnotherFormIsAnotherStep) {
  RecordingDevice device(true);
  RecordedSteps steps(device);
  for (int i = 0; i < 3; ++i) run(steps, decodes(4, 100, 2), device);
  EXPECT_EQ(run(steps, decodes(5, 100, 2), device), called_) << "a sequence more";
  EXPECT_EQ(run(steps, decodes(4, 129, 3), device), called_) << "wider block tables";
  ForwardBatch behind_prefix = decodes(4, 100, 2);
  behind_prefix.attention.shared.num_groups = 1;
  EXPECT_EQ(run(steps, behind_prefix, device), called_) << "a shared prefix";
  ForwardBatch elsewhere = decodes(4, 100, 2);
  elsewhere.token_ids.data = elsewhere.positions.as<int32_t>() + 4;
  EXPECT_EQ(run(steps, elsewhere, device), called_) << "ids that lie elsewhere";
  EXPECT_EQ(run(steps, decodes(4, 100, 2), device), launched_) << "the first form again";
}

TEST_F(RecordedStepsTest, WhatWasNotRunForLongIsForgotten) {
  RecordingDevice device(true);
  RecordedSteps steps(device);
  for (int i = 0; i < 3; ++i) run(steps, decodes(1, 100, 2), device);
  for (int64_t i = 2; i <= 16; ++i) run(steps, decodes(i, 100, 2), device);
  EXPECT_EQ(run(steps, decodes(1, 100, 2), device), launched_) << "sixteen forms are kept";
  for (int64_t i = 2; i <= 17; ++i) run(steps, decodes(i, 100, 2), device);
  EXPECT_EQ(run(steps, decodes(1, 100, 2), device), called_);
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
