// CPU loops on every instruction set that they are compiled for and this machine has.
#pragma once

#include <gtest/gtest.h>

#include "kernels/cpu/vector_level.h"

namespace tessera {

template <typename Body>
void for_each_vector_level(const Body& body) {
  for (const VectorLevel level : {VectorLevel::kPlain, VectorLevel::kAvx2, VectorLevel::kAvx512}) {
    if (level > best_vector_level()) break;
    SCOPED_TRACE(testing::Message() << "vector level " << static_cast<int>(level));
    set_vector_level(level);
    body();
  }
  set_vector_level(best_vector_level());
}

}  // namespace tessera
