// XXH64 (Collet 2012), a checksum that notices damage and no forger: it keeps up with files that
// come from memory, on any CPU.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tessera {

// With seed 0.
uint64_t xxhash64(const void* data, size_t size_bytes);

}  // namespace tessera
