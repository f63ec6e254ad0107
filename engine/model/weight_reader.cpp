#include "engine/model/weight_reader.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace tessera {
namespace {

// Where the bytes of an upload part lie in the checkpoint.
struct FileRange {
  const TensorEntry* entry = nullptr;
  uint64_t begin_bytes = 0;
  uint64_t size_bytes = 0;
};

struct Parts {
  std::vector<UploadPart> uploads;
  std::vector<FileRange> ranges;  // of each upload
};

// Cuts the pieces into parts of at most kMaxUploadPartBytes.
Parts cut(std::span<const WeightPiece> pieces) {
  Parts parts;
  for (const WeightPiece& piece : pieces) {
    const TensorEntry& entry = *piece.entry;
    const auto element_bytes = static_cast<uint64_t>(size_of(entry.dtype));
    const Tensor flat = piece.destination.reshape({entry.shape.num_elements()});
    for (uint64_t begin = 0; begin < entry.size_bytes; begin += kMaxUploadPartBytes) {
      const uint64_t bytes = std::min<uint64_t>(kMaxUploadPartBytes, entry.size_bytes - begin);
      const auto first = static_cast<int64_t>(begin / element_bytes);
      const auto count = static_cast<int64_t>(bytes / element_bytes);
      parts.uploads.push_back({flat.slice(first, first + count), entry.dtype});
      parts.ranges.push_back({&entry, begin, bytes});
    }
  }
  return parts;
}

void check_finite(const FileRange& range, const std::byte* data, const std::string& path) {
  const DType dtype = range.entry->dtype;
  const auto num_elements = static_cast<int64_t>(range.size_bytes / size_of(dtype));
  const auto first = static_cast<int64_t>(range.begin_bytes / size_of(dtype));
  const auto scan = [&]<typename T>(const T* values) {
    for (int64_t i = 0; i < num_elements; ++i) {
      CHECK(std::isfinite(to_float(values[i])), path, ": tensor '", range.entry->name, "' holds ",
            to_float(values[i]), " at flat index ", first + i);
    }
  };
  switch (dtype) {
    case DType::kFloat32:
      return scan(reinterpret_cast<const float*>(data));
    case DType::kFloat16:
      return scan(reinterpret_cast<const Float16*>(data));
    case DType::kBFloat16:
      return scan(reinterpret_cast<const BFloat16*>(data));
    case DType::kInt32:
      return;  // every pattern of bits is a number
  }
  throw Error(concat(path, ": tensor '", range.entry->name, "' is of an unknown dtype"));
}

}  // namespace

void read_weights(std::span<const WeightPiece> pieces, const Checkpoint& checkpoint, Device& device,
                  bool check_values, const LoadProgress& progress) {
  const Parts parts = cut(pieces);
  const uint64_t total_bytes = file_bytes(pieces);
  uint64_t done_bytes = 0;
  const auto read = [&](size_t index, std::byte* target) {
    const FileRange& range = parts.ranges[index];
    checkpoint.read(*range.entry, target, range.begin_bytes, range.size_bytes);
    if (check_values) {
      check_finite(range, target, checkpoint.file_paths()[range.entry->file_index]);
    }
  };
  const auto on_read = [&](size_t index) {
    done_bytes += parts.ranges[index].size_bytes;
    if (progress) progress(done_bytes, total_bytes);
  };
  device.upload_parts(parts.uploads, read, on_read);
}

uint64_t file_bytes(std::span<const WeightPiece> pieces) {
  uint64_t bytes = 0;
  for (const WeightPiece& piece : pieces) bytes += piece.entry->size_bytes;
  return bytes;
}

}  // namespace tessera
