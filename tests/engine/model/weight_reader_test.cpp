#include "engine/model/weight_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>
#include <optional>

#include "kernels/backend.h"
#include "tests/engine/error_of.h"
#include "tests/engine/model_fixture.h"

namespace tessera {
namespace {

using testing::HasSubstr;

constexpr int64_t kPartElements = kMaxUploadPartBytes / sizeof(float);
// Two parts and a bit.
constexpr int64_t kLargeElements = 2 * kPartElements + 3;

float value_at(int64_t index) { return static_cast<float>(index % 1000); }

// A checkpoint of a tensor "large" of several parts and a tensor "small", and memory to read them
// into, "small" as bfloat16.
class WeightReaderTest : public testing::Test {
 protected:
  void SetUp() override {
    weights_["large"].shape = {kLargeElements};
    for (int64_t i = 0; i < kLargeElements; ++i) weights_["large"].values.push_back(value_at(i));
    weights_["small"] = {{2, 2}, {1.0f, -2.0f, 0.5f, 300.0f}};
  }

  void open() {
    model_.write_weights(weights_);
    checkpoint_.emplace(Checkpoint::open(model_.path()));
    buffer_ = backend_->device().allocate((kLargeElements + 128) * sizeof(float), "test");
    Arena arena(buffer_);
    large_ = arena.take("large", DType::kFloat32, {kLargeElements});
    small_ = arena.take("small", DType::kBFloat16, {2, 2});
    pieces_ = {{.entry = checkpoint_->find("large"), .destination = large_},
               {.entry = checkpoint_->find("small"), .destination = small_}};
  }
  void read(bool check_values, const LoadProgress& progress = {}) {
    read_weights(pieces_, *checkpoint_, backend_->device(), check_values, progress);
  }
  std::string problem(bool check_values) {
    return error_of([&] { read(check_values); }).what();
  }
  std::string weights_path() const { return model_.path() + "/model.safetensors"; }

  const ModelFixture model_;
  HostWeights weights_;
  std::unique_ptr<Backend> backend_ = make_cpu_backend(3);
  std::optional<Checkpoint> checkpoint_;
  Buffer buffer_;
  Tensor large_, small_;
  std::vector<WeightPiece> pieces_;
};

TEST_F(WeightReaderTest, FillsEveryElement) {
  open();
  read(true);
  for (int64_t i = 0; i < kLargeElements; ++i) {
    ASSERT_EQ(large_.as<float>()[i], value_at(i)) << "element " << i;
  }
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(to_float(small_.as<BFloat16>()[i]), weights_["small"].values[static_cast<size_t>(i)]);
  }
}

TEST_F(WeightReaderTest, ProgressGrowsToTheEnd) {
  open();
  std::vector<uint64_t> done;
  read(false, [&](uint64_t done_bytes, uint64_t total_bytes) {
    done.push_back(done_bytes);
    EXPECT_EQ(total_bytes, (kLargeElements + 4) * sizeof(float));
  });
  ASSERT_EQ(done.size(), 4u);  // the parts
  EXPECT_EQ(done[0], kMaxUploadPartBytes);
  EXPECT_EQ(done[3], file_bytes(pieces_));
  EXPECT_TRUE(std::ranges::is_sorted(done));
}

TEST_F(WeightReaderTest, WhatProgressThrowsEndsTheLoad) {
  open();
  struct Interrupted {};
  int num_calls = 0;
  EXPECT_THROW(read(false,
                    [&](uint64_t, uint64_t) {
                      if (++num_calls == 2) throw Interrupted{};
                    }),
               Interrupted);
  EXPECT_EQ(num_calls, 2);
  EXPECT_NO_THROW(read(false));
}

TEST_F(WeightReaderTest, NamesTheFirstValueThatIsNotFinite) {
  weights_["small"].values[1] = std::numeric_limits<float>::infinity();
  open();
  EXPECT_NO_THROW(read(false));
  EXPECT_EQ(problem(true), weights_path() + ": tensor 'small' holds inf at flat index 1");

  weights_["large"].values[kPartElements + 5] = std::numeric_limits<float>::quiet_NaN();
  weights_["large"].values[2 * kPartElements] = std::numeric_limits<float>::infinity();
  open();
  EXPECT_EQ(problem(true),
            concat(weights_path(), ": tensor 'large' holds nan at flat index ", kPartElements + 5));
}

TEST_F(WeightReaderTest, NoticesThatTheFileShrank) {
  open();
  std::filesystem::resize_file(weights_path(), 1000);
  EXPECT_THAT(problem(false), HasSubstr(weights_path() + ": file changed during load"));
}

// Rows [first_row, num_rows) of "large", of so many columns, in groups of four of which the middle
// two change places. The file may have the elements in another shape.
class ReorderedRows : public WeightReaderTest {
 protected:
  void read_reordered(int64_t num_rows, int64_t columns, int64_t first_row,
                      std::optional<Shape> shape_in_file = {}) {
    weights_["large"] = {shape_in_file.value_or(Shape{num_rows, columns}), {}};
    for (int64_t i = 0; i < num_rows * columns; ++i) {
      weights_["large"].values.push_back(value_at(i));
    }
    model_.write_weights(weights_);
    checkpoint_.emplace(Checkpoint::open(model_.path()));
    const int64_t rows = num_rows - first_row;
    buffer_ = backend_->device().allocate((rows * columns + 128) * sizeof(float), "test");
    Arena arena(buffer_);
    large_ = arena.take("large", DType::kFloat32, {rows, columns});
    pieces_ = {{.entry = checkpoint_->find("large"),
                .destination = large_,
                .first_row = first_row,
                .row_order = order_}};
    read(true);
    for (int64_t row = 0; row < rows; ++row) {
      const auto group = static_cast<int64_t>(order_.size());
      const int64_t source =
          first_row + row / group * group + order_[static_cast<size_t>(row % group)];
      for (const int64_t column : {int64_t{0}, columns / 2, columns - 1}) {
        ASSERT_EQ(large_.as<float>()[row * columns + column], value_at(source * columns + column))
            << row << ' ' << column;
      }
    }
  }

  std::vector<int64_t> order_ = {0, 2, 1, 3};
};

TEST_F(ReorderedRows, InsideOnePart) { read_reordered(8, 5, 0); }
TEST_F(ReorderedRows, BehindRowsOfAnotherPiece) { read_reordered(10, 5, 2); }
TEST_F(ReorderedRows, InSeveralParts) { read_reordered(12, kPartElements / 5, 0); }
// A group is larger than a part.
TEST_F(ReorderedRows, GroupsAcrossParts) { read_reordered(12, kPartElements / 2 - 3, 0); }

// A vector of heads that the file has below each other.
TEST_F(ReorderedRows, ElementsOfAMatrix) {
  read_reordered(24, 1, 0, Shape{3, 8});
  read_reordered(24, 1, 4, Shape{3, 8});
}

TEST_F(ReorderedRows, LongerThanAPartAreRefused) {
  const std::string problem = error_of([&] { read_reordered(4, kPartElements + 1, 0); }).what();
  EXPECT_EQ(problem,
            "tensor 'large' has rows of 4194308 bytes, at most 4194304 are supported where rows "
            "change places");
}

// Three rows in the file of each four in memory, and two elements of each three.
class RowsWithZeros : public WeightReaderTest {
 protected:
  void read_with_zeros(int64_t num_groups, int64_t column_groups) {
    const int64_t rows = 3 * num_groups;
    const int64_t columns = 2 * column_groups;
    weights_["large"] = {{rows, columns}, {}};
    for (int64_t i = 0; i < rows * columns; ++i) weights_["large"].values.push_back(value_at(i));
    model_.write_weights(weights_);
    checkpoint_.emplace(Checkpoint::open(model_.path()));
    const Shape shape{4 * num_groups, 3 * column_groups};
    buffer_ = backend_->device().allocate((shape.num_elements() + 128) * sizeof(float), "test");
    Arena arena(buffer_);
    large_ = arena.take("large", DType::kFloat32, shape);
    std::ranges::fill_n(large_.as<float>(), shape.num_elements(), -1.0f);
    pieces_ = {{.entry = checkpoint_->find("large"),
                .destination = large_,
                .row_order = row_order_,
                .column_order = column_order_}};
    EXPECT_EQ(file_bytes(pieces_), static_cast<uint64_t>(rows * columns) * sizeof(float));
    read(true);
    for (int64_t row = 0; row < shape[0]; ++row) {
      for (int64_t column = 0; column < shape[1]; ++column) {
        const int64_t stored_row = row_order_[static_cast<size_t>(row % 4)];
        const int64_t stored_column = column_order_[static_cast<size_t>(column % 3)];
        const bool is_zero = stored_row < 0 || stored_column < 0;
        const int64_t source =
            (row / 4 * 3 + stored_row) * columns + column / 3 * 2 + stored_column;
        ASSERT_EQ(large_.as<float>()[row * shape[1] + column], is_zero ? 0.0f : value_at(source))
            << row << ' ' << column;
      }
    }
  }

  std::vector<int64_t> row_order_ = {2, -1, 0, 1};
  std::vector<int64_t> column_order_ = {1, 0, -1};
};

TEST_F(RowsWithZeros, InsideOnePart) { read_with_zeros(5, 7); }
TEST_F(RowsWithZeros, InSeveralParts) { read_with_zeros(3, kPartElements / 20); }
// A part may have nothing but a row of zeros.
TEST_F(RowsWithZeros, GroupsAcrossParts) { read_with_zeros(2, kPartElements / 4); }

TEST_F(WeightReaderTest, ChangesValuesOfVectors) {
  open();
  pieces_[0].addend = 1.0;
  pieces_[0].factor = 0.5;
  read(true);
  for (int64_t i = 0; i < kLargeElements; ++i) {
    ASSERT_EQ(large_.as<float>()[i], 0.5f * (value_at(i) + 1.0f)) << "element " << i;
  }
}

}  // namespace
}  // namespace tessera
