// What the backend asks the machine about itself.
#pragma once

#include <string_view>

namespace tessera {

// Physical cores that this process may run on, at least 1. A second hardware thread of a core adds
// nothing to loops that are bound by memory or by the vector units.
int count_physical_cores();

// The instruction set that run_vectorized() chooses: "AVX-512", "AVX2" or "SSE2"; on another than
// an x86-64 processor, that there is no choice.
std::string_view vector_instruction_set();

}  // namespace tessera
