#include "kernels/cpu/rotation_table.h"

#include <algorithm>
#include <cmath>

namespace tessera {
namespace {

// [2, num_frequencies] of one token.
void rotate(int32_t position, std::span<const float> rope_table, float* cosines) {
  const size_t num_frequencies = rope_table.size() / 2;
  for (size_t i = 0; i < num_frequencies; ++i) {
    // A float32 product would be off by 0.03 radians at position 1,000,000.
    const double angle = position * static_cast<double>(rope_table[i]);
    const double amplitude = rope_table[num_frequencies + i];
    cosines[i] = static_cast<float>(amplitude * std::cos(angle));
    cosines[num_frequencies + i] = static_cast<float>(amplitude * std::sin(angle));
  }
}

}  // namespace

RotationTable::Rotations& RotationTable::of_table(std::span<const float> rope_table) {
  const auto found = std::ranges::find_if(tables_, [&](const Rotations& rotations) {
    return std::ranges::equal(rotations.rope_table, rope_table);
  });
  if (found != tables_.end()) return *found;
  if (tables_.size() < kMaxTables) {
    tables_.emplace_back();
    next_replaced_ = tables_.size() - 1;
  } else {
    next_replaced_ = (next_replaced_ + 1) % kMaxTables;
  }
  Rotations& replaced = tables_[next_replaced_];
  replaced.rope_table.assign(rope_table.begin(), rope_table.end());
  replaced.positions.clear();
  return replaced;
}

const float* RotationTable::rotations(std::span<const int32_t> positions,
                                      std::span<const float> rope_table, ThreadPool& pool) {
  Rotations& rotations = of_table(rope_table);
  if (std::ranges::equal(positions, rotations.positions)) return rotations.values.data();
  rotations.positions.clear();  // for the case that the loop is given up
  rotations.values.resize(positions.size() * rope_table.size());
  constexpr double kRotationNanoseconds = 30;  // a sine and a cosine in double precision
  pool.for_each(std::ssize(positions),
                static_cast<double>(rope_table.size() / 2) * kRotationNanoseconds,
                [&](int64_t token) {
                  const auto i = static_cast<size_t>(token);
                  rotate(positions[i], rope_table, rotations.values.data() + i * rope_table.size());
                });
  rotations.positions.assign(positions.begin(), positions.end());
  return rotations.values.data();
}

}  // namespace tessera
