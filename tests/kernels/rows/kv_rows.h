// Rotary positions and rows of KV pages in tests.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/kernels/for_each_backend.h"
#include "tests/kernels/tolerance.h"

namespace tessera {

// [2, head_dim / 2], rounded to float32: usual inverse frequencies, and amplitudes.
std::vector<double> rope_table(int64_t head_dim, double amplitude = 1.0);

void append(Reference& reference, const Reference& more);

// The rows that slots name, token by token and head by head, of pages that were poisoned before
// they were written. Fails the test when other rows were written too.
std::vector<double> stored_rows(const std::vector<double>& pages, const Shape& page_shape,
                                const std::vector<int32_t>& slots);

}  // namespace tessera
