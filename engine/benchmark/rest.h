// A pause before something is timed.
#pragma once

#include "kernels/device.h"

namespace tessera {

// Half a second in which a GPU has nothing to do; nothing on a CPU. A GPU that has just worked hard
// runs at a lower clock. And for a while after memory was freed, reads are slower: an H200 that
// reads 4,600 GB/s read 4,000 right after 12 GiB had been freed, and 4,590 after 0.1 s.
void rest(const Device& device);

}  // namespace tessera
