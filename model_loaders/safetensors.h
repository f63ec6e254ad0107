// The safetensors format: 8 bytes of little-endian header length, a JSON header that says for every
// tensor dtype, shape and byte range, then the data without holes.
//
//   {"__metadata__": {"format": "pt"}, "w": {"dtype": "BF16", "shape": [2, 3],
//                                            "data_offsets": [0, 12]}}
#pragma once

#include <cstdint>
#include <vector>

#include "model_loaders/file_reader.h"
#include "model_loaders/tensor_entry.h"

namespace tessera {

constexpr uint64_t kMaxSafetensorsHeaderBytes = 100'000'000;

// Reads and checks the header; the entries come in the order of their data. Stricter than the
// format's reference reader, which lets pass duplicate names, unknown fields and absurd shapes; it
// agrees that offsets may be unaligned and the header padded with white space.
//
// Throws Error naming path, tensor and numbers. Values of the data are not looked at. Tensors of a
// dtype that is not F32, F16 or BF16 are an error unless is_ignorable_weight(name): those are
// checked like the rest and left out.
std::vector<TensorEntry> read_safetensors_header(const FileReader& file, size_t file_index);

}  // namespace tessera
