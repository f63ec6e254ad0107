#include "model_loaders/safetensors.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "kernels/tensor/check.h"
#include "kernels/tensor/checked_math.h"
#include "model_loaders/foreign_format.h"
#include "model_loaders/printable.h"
#include "model_loaders/safetensors_header.h"
#include "model_loaders/weight_names.h"

namespace tessera {
namespace {

constexpr uint64_t kLengthBytes = 8;

struct StoredDtype {
  std::string_view name;
  uint64_t bits;
  std::optional<DType> usable_as;
};

constexpr StoredDtype kStoredDtypes[] = {
    {"F32", 32, DType::kFloat32},
    {"F16", 16, DType::kFloat16},
    {"BF16", 16, DType::kBFloat16},
    {"F64", 64, {}},
    {"C64", 64, {}},
    {"I64", 64, {}},
    {"U64", 64, {}},
    {"I32", 32, {}},
    {"U32", 32, {}},
    {"I16", 16, {}},
    {"U16", 16, {}},
    {"I8", 8, {}},
    {"U8", 8, {}},
    {"BOOL", 8, {}},
    {"F8_E5M2", 8, {}},
    {"F8_E4M3", 8, {}},
    {"F8_E8M0", 8, {}},
    {"F8_E4M3FNUZ", 8, {}},
    {"F8_E5M2FNUZ", 8, {}},
    {"F6_E2M3", 6, {}},
    {"F6_E3M2", 6, {}},
    {"F4", 4, {}},
};

std::string tensor_label(const SafetensorsRow& row) {
  return concat("tensor '", printable(row.name), "'");
}

std::string range_text(const SafetensorsRow& row) {
  return concat("bytes ", row.data_offsets[0], "..", row.data_offsets[1]);
}

// Reads the header's bytes, refusing a length that the file cannot have before allocating it.
std::string read_header_text(const FileReader& file) {
  const uint64_t file_bytes = file.size_bytes();
  const std::string& path = file.path();
  if (file_bytes == 0) {
    throw Error(path + ": file is empty; expected a safetensors header",
                "download the model again");
  }

  std::string first_bytes(static_cast<size_t>(std::min<uint64_t>(file_bytes, 64)), '\0');
  file.read(first_bytes.data(), 0, first_bytes.size());
  // Other formats read as a length far beyond the limit.
  const auto refuse_foreign_format = [&] {
    if (const auto error = recognise_foreign_format(first_bytes, path)) throw *error;
  };
  if (file_bytes < kLengthBytes) refuse_foreign_format();
  CHECK(file_bytes >= kLengthBytes, path, ": file has ", counted(file_bytes, "byte"),
        ", too short for the 8-byte header length");
  uint64_t header_bytes = 0;
  for (size_t i = kLengthBytes; i-- > 0;) {
    header_bytes = header_bytes << 8 | static_cast<unsigned char>(first_bytes[i]);
  }
  if (header_bytes > kMaxSafetensorsHeaderBytes) refuse_foreign_format();
  CHECK(header_bytes <= kMaxSafetensorsHeaderBytes, path, ": header length ", header_bytes,
        " exceeds limit ", kMaxSafetensorsHeaderBytes);
  CHECK(header_bytes <= file_bytes - kLengthBytes, path, ": header claims ",
        counted(header_bytes, "byte"), ", file has ", file_bytes - kLengthBytes,
        " after the header length");
  CHECK(header_bytes > 0, path, ": header is empty");

  std::string text(static_cast<size_t>(header_bytes), '\0');
  file.read(text.data(), kLengthBytes, header_bytes);
  return text;
}

// The dtype's row; throws when the tensor is needed and the dtype is not usable.
const StoredDtype& stored_dtype(const SafetensorsRow& row, const std::string& path) {
  const auto* const known = std::ranges::find(kStoredDtypes, row.dtype, &StoredDtype::name);
  const bool is_known = known != std::end(kStoredDtypes);
  if (is_known && (known->usable_as || is_ignorable_weight(row.name))) return *known;
  const bool is_quantised = row.name.ends_with(".qweight") || row.name.ends_with(".qzeros") ||
                            row.name.ends_with(".g_idx");
  CHECK(!is_quantised, path, ": quantised checkpoints are not supported: ", tensor_label(row),
        " is ", printable(row.dtype));
  throw Error(concat(path, ": dtype '", printable(row.dtype), "' of ", tensor_label(row),
                     " is not supported; supported: F32 F16 BF16"));
}

// Bytes that dtype and shape ask for.
uint64_t needed_bytes(const SafetensorsRow& row, const StoredDtype& dtype,
                      const std::string& path) {
  const std::string what = concat(path, ": ", tensor_label(row), ": shape");
  // A dimension of 0 counts as 1 at first: whether the product overflows must not depend on where
  // the 0 stands. int64_t because that is how elements are counted everywhere else.
  int64_t elements = 1;
  for (const int64_t dim : row.shape.dims()) {
    elements = checked_multiply(elements, std::max<int64_t>(dim, 1), what);
  }
  if (std::ranges::count(row.shape.dims(), 0) > 0) elements = 0;
  const uint64_t bits = checked_multiply(static_cast<uint64_t>(elements), dtype.bits, what);
  CHECK(bits % 8 == 0, path, ": ", tensor_label(row), ": ", dtype.name, " ", row.shape,
        " does not end on a whole byte");
  return bits / 8;
}

void check_size(const SafetensorsRow& row, const StoredDtype& dtype, const std::string& path) {
  const auto [begin, end] = row.data_offsets;
  CHECK(begin <= end, path, ": ", tensor_label(row), ": data_offsets [", begin, ", ", end,
        "] are reversed");
  const uint64_t needed = needed_bytes(row, dtype, path);
  CHECK(needed == end - begin, path, ": ", tensor_label(row), ": ", dtype.name, " ", row.shape,
        " needs ", counted(needed, "byte"), ", header gives ", end - begin);
}

// The data must be covered exactly once. `rows` are sorted by offsets.
void check_coverage(const std::vector<SafetensorsRow>& rows, uint64_t data_bytes,
                    const std::string& path) {
  CHECK(rows.front().data_offsets[0] == 0, path, ": ", tensor_label(rows.front()), " (",
        range_text(rows.front()), ") is the first and must start at byte 0 of the data");
  for (size_t i = 1; i < rows.size(); ++i) {
    const SafetensorsRow& previous = rows[i - 1];
    const SafetensorsRow& row = rows[i];
    const uint64_t previous_end = previous.data_offsets[1];
    const uint64_t begin = row.data_offsets[0];
    const auto both = [&] {
      return concat(tensor_label(previous), " (", range_text(previous), ") and ", tensor_label(row),
                    " (", range_text(row), ")");
    };
    if (begin > previous_end) {
      throw Error(
          concat(path, ": ", counted(begin - previous_end, "unused byte"), " between ", both()));
    }
    if (begin < previous_end) throw Error(concat(path, ": data overlaps: ", both()));
  }
  const uint64_t end = rows.back().data_offsets[1];
  CHECK(end <= data_bytes, path, ": file is ", counted(end - data_bytes, "byte"), " short; ",
        tensor_label(rows.back()), " needs bytes up to ", end, " of the data, the file has ",
        data_bytes);
  const uint64_t excess = data_bytes - end;
  CHECK(excess == 0, path, ": ", counted(excess, "unexpected byte"), " after tensor data");
}

}  // namespace

std::vector<TensorEntry> read_safetensors_header(const FileReader& file, size_t file_index) {
  const std::string& path = file.path();
  const std::string text = read_header_text(file);
  std::vector<SafetensorsRow> rows = parse_safetensors_header(text, {path, "header byte"});
  CHECK(!rows.empty(), path, ": holds no tensors");
  std::ranges::sort(rows, {}, &SafetensorsRow::data_offsets);
  for (const SafetensorsRow& row : rows) check_size(row, stored_dtype(row, path), path);
  const uint64_t data_begin = kLengthBytes + text.size();
  check_coverage(rows, file.size_bytes() - data_begin, path);

  std::vector<TensorEntry> entries;
  for (SafetensorsRow& row : rows) {
    const StoredDtype& dtype = stored_dtype(row, path);
    if (!dtype.usable_as) continue;
    const auto [begin, end] = row.data_offsets;
    entries.push_back({.name = std::move(row.name),
                       .dtype = *dtype.usable_as,
                       .shape = row.shape,
                       .file_index = file_index,
                       .offset_bytes = checked_add(data_begin, begin, path),
                       .size_bytes = end - begin});
  }
  return entries;
}

}  // namespace tessera
