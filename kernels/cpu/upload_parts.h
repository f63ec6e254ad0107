// Filling weights from files on the CPU.
#pragma once

#include <span>

#include "kernels/device.h"

namespace tessera {

// Device::upload_parts by `num_threads` reading threads. Parts that need no conversion are read
// straight into place.
void upload_parts(std::span<const UploadPart> parts, const Device::ReadPart& read,
                  const Device::OnPartRead& on_read, int num_threads);

}  // namespace tessera
