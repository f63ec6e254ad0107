// Whether and which GPU can be used. cuda_status(), declared in kernels/cuda_status.h, is defined
// here.
#pragma once

namespace tessera {

// Makes GPU `index` current. Throws Error when there is none, when the index is out of range (with
// the valid range), or when this binary has no code for its architecture.
void select_device(int index);

}  // namespace tessera
