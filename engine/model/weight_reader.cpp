#include "engine/model/weight_reader.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

namespace tessera {
namespace {

// What an upload part is made of: rows of a piece, or elements where its rows stay as they are.
struct FileRange {
  const WeightPiece* piece = nullptr;
  uint64_t begin_bytes = 0;  // in the tensor of the checkpoint
  uint64_t size_bytes = 0;

  const TensorEntry& entry() const { return *piece->entry; }
};

struct Parts {
  std::vector<UploadPart> uploads;
  std::vector<FileRange> ranges;  // of each upload
};

// Of a row of the file, as the destination has rows.
uint64_t row_bytes(const WeightPiece& piece) {
  const Tensor& rows = piece.destination;
  return static_cast<uint64_t>(rows.num_elements() / rows.dim(0)) * size_of(piece.entry->dtype);
}

bool changes_values(const WeightPiece& piece) { return piece.addend != 0.0 || piece.factor != 1.0; }

// Bytes of the file that an upload part of the piece has at most. Of rows that change places, whole
// groups if one is small enough, else whole rows.
uint64_t part_bytes(const WeightPiece& piece) {
  if (piece.order.empty()) return kMaxUploadPartBytes;
  const uint64_t row = row_bytes(piece);
  CHECK(row <= kMaxUploadPartBytes, "tensor '", piece.entry->name, "' has rows of ", row,
        " bytes, at most ", kMaxUploadPartBytes, " are supported where rows change places");
  const uint64_t group = row * piece.order.size();
  const uint64_t unit = group <= kMaxUploadPartBytes ? group : row;
  return kMaxUploadPartBytes / unit * unit;
}

// Cuts the pieces into parts of at most kMaxUploadPartBytes.
Parts cut(std::span<const WeightPiece> pieces) {
  Parts parts;
  for (const WeightPiece& piece : pieces) {
    const TensorEntry& entry = *piece.entry;
    const auto element_bytes = static_cast<uint64_t>(size_of(entry.dtype));
    const int64_t num_elements = piece.destination.num_elements();
    const Tensor flat = piece.destination.reshape({num_elements});
    const uint64_t piece_bytes = static_cast<uint64_t>(num_elements) * element_bytes;
    const uint64_t piece_begin = static_cast<uint64_t>(piece.first_row) * row_bytes(piece);
    const DType uploaded = changes_values(piece) ? DType::kFloat32 : entry.dtype;
    // Half of what is allowed where 16-bit values become float32.
    const uint64_t step = part_bytes(piece) * element_bytes / size_of(uploaded);
    for (uint64_t begin = 0; begin < piece_bytes; begin += step) {
      const uint64_t bytes = std::min<uint64_t>(step, piece_bytes - begin);
      const auto first = static_cast<int64_t>(begin / element_bytes);
      const auto count = static_cast<int64_t>(bytes / element_bytes);
      parts.uploads.push_back({flat.slice(first, first + count), uploaded});
      parts.ranges.push_back({&piece, piece_begin + begin, bytes});
    }
  }
  return parts;
}

// Calls visit(values) with the bytes as what they are.
template <typename Visit>
void visit_values(const TensorEntry& entry, const std::byte* data, const Visit& visit) {
  switch (entry.dtype) {
    case DType::kFloat32:
      return visit(reinterpret_cast<const float*>(data));
    case DType::kFloat16:
      return visit(reinterpret_cast<const Float16*>(data));
    case DType::kBFloat16:
      return visit(reinterpret_cast<const BFloat16*>(data));
    case DType::kInt32:
    case DType::kFloat8E4M3:
      break;
  }
  throw Error(concat("tensor '", entry.name, "' of ", to_string(entry.dtype), " is no weight"));
}

// Reads parts from the checkpoint; called by several threads at once.
class PartReader {
 public:
  PartReader(const Checkpoint& checkpoint, bool checks_values)
      : checkpoint_(checkpoint), checks_values_(checks_values) {}

  // Writes the part to `target` in the dtype in which it is uploaded.
  void read(const FileRange& range, std::byte* target) const {
    if (!changes_values(*range.piece)) return read_rows(range, target);
    const auto stored = std::make_unique_for_overwrite<std::byte[]>(range.size_bytes);
    read_rows(range, stored.get());
    change_values(range, stored.get(), reinterpret_cast<float*>(target));
  }

 private:
  // Every row where the piece wants it.
  void read_rows(const FileRange& range, std::byte* target) const {
    range.piece->order.empty() ? read_bytes(range, target) : read_in_order(range, target);
  }

  // As the file has them.
  void read_bytes(const FileRange& range, std::byte* target) const {
    checkpoint_.read(range.entry(), target, range.begin_bytes, range.size_bytes);
    if (checks_values_) check_finite(range, target);
  }

  // Reads the groups that the part has rows of as they are, then copies the rows.
  void read_in_order(const FileRange& range, std::byte* target) const {
    const WeightPiece& piece = *range.piece;
    const uint64_t bytes = row_bytes(piece);
    const uint64_t group = piece.order.size();
    const uint64_t piece_begin = static_cast<uint64_t>(piece.first_row) * bytes;
    const uint64_t first = (range.begin_bytes - piece_begin) / bytes;
    const uint64_t end = first + range.size_bytes / bytes;
    const uint64_t first_read = first / group * group;
    const uint64_t num_read = (end + group - 1) / group * group - first_read;
    const auto rows = std::make_unique_for_overwrite<std::byte[]>(num_read * bytes);
    read_bytes({&piece, piece_begin + first_read * bytes, num_read * bytes}, rows.get());
    for (uint64_t row = first; row < end; ++row) {
      const uint64_t source =
          row / group * group + static_cast<uint64_t>(piece.order[row % group]) - first_read;
      std::memcpy(target + (row - first) * bytes, rows.get() + source * bytes, bytes);
    }
  }

  static void change_values(const FileRange& range, const std::byte* stored, float* target) {
    const WeightPiece& piece = *range.piece;
    const uint64_t count = range.size_bytes / size_of(piece.entry->dtype);
    visit_values(*piece.entry, stored, [&](const auto* values) {
      for (uint64_t i = 0; i < count; ++i) {
        target[i] = static_cast<float>((to_float(values[i]) + piece.addend) * piece.factor);
      }
    });
  }

  void check_finite(const FileRange& range, const std::byte* data) const {
    const TensorEntry& entry = range.entry();
    const uint64_t first = range.begin_bytes / size_of(entry.dtype);
    const uint64_t count = range.size_bytes / size_of(entry.dtype);
    visit_values(entry, data, [&](const auto* values) {
      for (uint64_t i = 0; i < count; ++i) {
        CHECK(std::isfinite(to_float(values[i])), checkpoint_.file_paths()[entry.file_index],
              ": tensor '", entry.name, "' holds ", to_float(values[i]), " at flat index ",
              first + i);
      }
    });
  }

  const Checkpoint& checkpoint_;
  const bool checks_values_;
};

}  // namespace

void read_weights(std::span<const WeightPiece> pieces, const Checkpoint& checkpoint, Device& device,
                  bool check_values, const LoadProgress& progress) {
  const Parts parts = cut(pieces);
  const PartReader reader(checkpoint, check_values);
  const uint64_t total_bytes = file_bytes(pieces);
  uint64_t done_bytes = 0;
  const auto read = [&](size_t index, std::byte* target) {
    reader.read(parts.ranges[index], target);
  };
  const auto on_read = [&](size_t index) {
    done_bytes += parts.ranges[index].size_bytes;
    if (progress) progress(done_bytes, total_bytes);
  };
  device.upload_parts(parts.uploads, read, on_read);
}

uint64_t file_bytes(std::span<const WeightPiece> pieces) {
  uint64_t bytes = 0;
  for (const WeightPiece& piece : pieces) {
    bytes += static_cast<uint64_t>(piece.destination.num_elements()) * size_of(piece.entry->dtype);
  }
  return bytes;
}

}  // namespace tessera
