// Turns the JSON header of a safetensors file into rows, one per tensor.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/tensor/shape.h"
#include "model_loaders/json_text.h"

namespace tessera {

// About as many as the largest models have in all their files together.
constexpr size_t kMaxTensorsPerFile = 100'000;
constexpr uint64_t kMaxTensorDimension = uint64_t{1} << 48;

// One tensor as the header describes it. Only the form is checked: types and counts of the JSON
// values, every dimension at most kMaxTensorDimension, names unique.
struct SafetensorsRow {
  std::string name;
  std::string dtype;  // "BF16"; any string
  Shape shape;
  std::array<uint64_t, 2> data_offsets{};  // begin, end; relative to the data
};

// Never builds a document, so memory stays within the text's size plus the rows. Throws Error.
std::vector<SafetensorsRow> parse_safetensors_header(std::string_view text,
                                                     const JsonSource& source);

}  // namespace tessera
