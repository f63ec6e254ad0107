// Host memory: how much there is, and taking some.
#pragma once

#include <string_view>

#include "kernels/device.h"

namespace tessera {

// What this process may still take without swapping: MemAvailable, or less when a control group
// (a container) allows less.
DeviceMemory host_memory();

// Page-aligned memory, in huge pages where the kernel gives them. Throws Error naming `purpose`,
// the bytes asked for and the bytes free. Gives no more than host_memory() has: Linux would grant
// more and end the process when it is used. 0 bytes give an empty Buffer.
Buffer allocate_host_memory(size_t bytes, std::string_view purpose);

}  // namespace tessera
