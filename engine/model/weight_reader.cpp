#include "engine/model/weight_reader.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "model_loaders/head_order.h"

namespace tessera {
namespace {

// Elements of a row that stand side by side in the file and in the destination.
struct Run {
  uint64_t stored_begin = 0;
  uint64_t begin = 0;
  uint64_t count = 0;
};

// How rows, or the elements of a row, lie in the file and in the destination.
class Axis {
 public:
  // order: empty, or as WeightPiece::row_order. size: in the destination, whole groups.
  Axis(std::span<const int64_t> order, uint64_t size)
      : order_(order),
        num_stored_(order.size() - static_cast<uint64_t>(std::ranges::count(order, kZeroElement))),
        size_(size) {}

  bool is_as_stored() const { return order_.empty(); }
  uint64_t group() const { return order_.empty() ? 1 : order_.size(); }
  uint64_t size() const { return size_; }
  uint64_t stored_size() const {
    return order_.empty() ? size_ : size_ / order_.size() * num_stored_;
  }
  // The place in the file of what the destination has here, counted from where both begin; nothing
  // for a zero.
  std::optional<uint64_t> stored_place(uint64_t place) const {
    if (order_.empty()) return place;
    const int64_t in_group = order_[place % order_.size()];
    if (in_group == kZeroElement) return std::nullopt;
    return place / order_.size() * num_stored_ + static_cast<uint64_t>(in_group);
  }
  // All that is no zero.
  std::vector<Run> runs() const {
    std::vector<Run> runs;
    for (uint64_t place = 0; place < size_; ++place) {
      const std::optional<uint64_t> stored = stored_place(place);
      if (!stored) continue;
      const bool goes_on = !runs.empty() && runs.back().begin + runs.back().count == place &&
                           runs.back().stored_begin + runs.back().count == *stored;
      if (!goes_on) runs.push_back({.stored_begin = *stored, .begin = place});
      ++runs.back().count;
    }
    return runs;
  }

 private:
  std::span<const int64_t> order_;
  uint64_t num_stored_;  // of a group
  uint64_t size_;
};

// A piece as it is cut and read: in rows, and in bytes as the file stores elements.
struct Layout {
  const WeightPiece* piece;
  uint64_t element_bytes;
  Axis rows;
  Axis columns;
  std::vector<Run> column_runs;  // where columns are not as stored

  explicit Layout(const WeightPiece& of)
      : piece(&of),
        element_bytes(size_of(of.entry->dtype)),
        rows(of.row_order, static_cast<uint64_t>(of.destination.dim(0))),
        columns(of.column_order,
                static_cast<uint64_t>(of.destination.num_elements() / of.destination.dim(0))) {
    if (!columns.is_as_stored()) column_runs = columns.runs();
  }

  bool is_as_stored() const { return rows.is_as_stored() && columns.is_as_stored(); }
  // Of a row of the file, and of the destination.
  uint64_t stored_row_bytes() const { return columns.stored_size() * element_bytes; }
  uint64_t row_bytes() const { return columns.size() * element_bytes; }
  uint64_t stored_bytes() const { return rows.stored_size() * stored_row_bytes(); }
  uint64_t begin_bytes() const {  // in the file
    return static_cast<uint64_t>(piece->first_row) * stored_row_bytes();
  }
};

// What an upload part is made of: bytes of the file where rows and columns stay as they are, else
// rows of the destination, which are then read from more or less of it.
struct PartSource {
  const Layout* layout = nullptr;
  uint64_t begin_bytes = 0;  // of the piece, as the destination has it
  uint64_t size_bytes = 0;

  const WeightPiece& piece() const { return *layout->piece; }
  const TensorEntry& entry() const { return *piece().entry; }
};

struct Parts {
  std::vector<Layout> layouts;  // of each piece
  std::vector<UploadPart> uploads;
  std::vector<PartSource> sources;  // of each upload
};

bool changes_values(const WeightPiece& piece) { return piece.addend != 0.0 || piece.factor != 1.0; }

// How many bytes of the piece an upload part has at most. Of rows that change places, whole groups
// if one is small enough, else whole rows.
uint64_t part_bytes(const Layout& layout) {
  if (layout.is_as_stored()) return kMaxUploadPartBytes;
  const uint64_t row = layout.row_bytes();
  CHECK(row <= kMaxUploadPartBytes, "tensor '", layout.piece->entry->name, "' has rows of ", row,
        " bytes, at most ", kMaxUploadPartBytes, " are supported where rows change places");
  const uint64_t group = row * layout.rows.group();
  const uint64_t unit = group <= kMaxUploadPartBytes ? group : row;
  return kMaxUploadPartBytes / unit * unit;
}

// Cuts the pieces into parts of at most kMaxUploadPartBytes.
Parts cut(std::span<const WeightPiece> pieces) {
  Parts parts;
  parts.layouts = std::vector<Layout>(pieces.begin(), pieces.end());
  for (const Layout& layout : parts.layouts) {
    const WeightPiece& piece = *layout.piece;
    const int64_t num_elements = piece.destination.num_elements();
    const Tensor flat = piece.destination.reshape({num_elements});
    const uint64_t piece_bytes = layout.rows.size() * layout.row_bytes();
    const DType uploaded = changes_values(piece) ? DType::kFloat32 : piece.entry->dtype;
    // Half of what is allowed where 16-bit values become float32.
    const uint64_t step = part_bytes(layout) * layout.element_bytes / size_of(uploaded);
    for (uint64_t begin = 0; begin < piece_bytes; begin += step) {
      const uint64_t bytes = std::min<uint64_t>(step, piece_bytes - begin);
      const auto first = static_cast<int64_t>(begin / layout.element_bytes);
      const auto count = static_cast<int64_t>(bytes / layout.element_bytes);
      parts.uploads.push_back({flat.slice(first, first + count), uploaded});
      parts.sources.push_back({&layout, begin, bytes});
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
  void read(const PartSource& part, std::byte* target) const {
    if (!changes_values(part.piece())) return read_rows(part, target);
    const auto stored = std::make_unique_for_overwrite<std::byte[]>(part.size_bytes);
    read_rows(part, stored.get());
    change_values(part, stored.get(), reinterpret_cast<float*>(target));
  }

 private:
  // Every row where the piece wants it.
  void read_rows(const PartSource& part, std::byte* target) const {
    const Layout& layout = *part.layout;
    if (!layout.is_as_stored()) return read_in_order(part, target);
    read_bytes(part.entry(), layout.begin_bytes() + part.begin_bytes, part.size_bytes, target);
  }

  // As the file has them.
  void read_bytes(const TensorEntry& entry, uint64_t begin_bytes, uint64_t size_bytes,
                  std::byte* target) const {
    checkpoint_.read(entry, target, begin_bytes, size_bytes);
    if (checks_values_) check_finite(entry, begin_bytes, size_bytes, target);
  }

  // Reads the rows of the file from the first to the last that the part has, then copies each to
  // its place.
  void read_in_order(const PartSource& part, std::byte* target) const {
    const Layout& layout = *part.layout;
    const uint64_t first = part.begin_bytes / layout.row_bytes();
    const uint64_t end = first + part.size_bytes / layout.row_bytes();
    uint64_t first_read = UINT64_MAX;
    uint64_t end_read = 0;
    for (uint64_t row = first; row < end; ++row) {
      const std::optional<uint64_t> source = layout.rows.stored_place(row);
      if (!source) continue;
      first_read = std::min(first_read, *source);
      end_read = std::max(end_read, *source + 1);
    }
    std::memset(target, 0, part.size_bytes);
    if (end_read == 0) return;  // all are zeros
    const uint64_t bytes = layout.stored_row_bytes();
    const uint64_t num_read = end_read - first_read;
    const auto rows = std::make_unique_for_overwrite<std::byte[]>(num_read * bytes);
    read_bytes(part.entry(), layout.begin_bytes() + first_read * bytes, num_read * bytes,
               rows.get());
    for (uint64_t row = first; row < end; ++row) {
      const std::optional<uint64_t> source = layout.rows.stored_place(row);
      if (!source) continue;
      copy_row(layout, rows.get() + (*source - first_read) * bytes,
               target + (row - first) * layout.row_bytes());
    }
  }

  // target: zeros.
  static void copy_row(const Layout& layout, const std::byte* stored, std::byte* target) {
    if (layout.columns.is_as_stored()) {
      std::memcpy(target, stored, layout.row_bytes());
      return;
    }
    const uint64_t bytes = layout.element_bytes;
    for (const auto& [stored_begin, begin, count] : layout.column_runs) {
      std::memcpy(target + begin * bytes, stored + stored_begin * bytes, count * bytes);
    }
  }

  static void change_values(const PartSource& part, const std::byte* stored, float* target) {
    const WeightPiece& piece = part.piece();
    const uint64_t count = part.size_bytes / part.layout->element_bytes;
    visit_values(*piece.entry, stored, [&](const auto* values) {
      for (uint64_t i = 0; i < count; ++i) {
        target[i] = static_cast<float>((to_float(values[i]) + piece.addend) * piece.factor);
      }
    });
  }

  void check_finite(const TensorEntry& entry, uint64_t begin_bytes, uint64_t size_bytes,
                    const std::byte* data) const {
    const uint64_t first = begin_bytes / size_of(entry.dtype);
    const uint64_t count = size_bytes / size_of(entry.dtype);
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
  uint64_t total_bytes = 0;
  for (const PartSource& part : parts.sources) total_bytes += part.size_bytes;
  uint64_t done_bytes = 0;
  const auto read = [&](size_t index, std::byte* target) {
    reader.read(parts.sources[index], target);
  };
  const auto on_read = [&](size_t index) {
    done_bytes += parts.sources[index].size_bytes;
    if (progress) progress(done_bytes, total_bytes);
  };
  device.upload_parts(parts.uploads, read, on_read);
}

uint64_t file_bytes(std::span<const WeightPiece> pieces) {
  uint64_t bytes = 0;
  for (const WeightPiece& piece : pieces) bytes += Layout(piece).stored_bytes();
  return bytes;
}

}  // namespace tessera
