// Rotary positions and rows of KV pages in tests.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/kernels/for_each_backend.h"
#include "tests/kernels/tolerance.h"

namespace tessera {

// [head_dim / 2], rounded to float32.
std::vector<double> rope_frequencies(int64_t head_dim);

void append(Reference& reference, const Reference& more);

// The rows that slots name, token by token and head by head, of pages that were poisoned before
// they were written. Fails the test when other rows were written too.
std::vector<double> stored_rows(const std::vector<double>& pages, const Shape& page_shape,
                                const std::vector<int32_t>& slots);

}  // namespace tessera
