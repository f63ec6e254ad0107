#include "model_loaders/kv_file_header.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "kernels/tensor/checked_math.h"
#include "model_loaders/printable.h"
#include "model_loaders/xxhash64.h"

namespace tessera {
namespace {

constexpr std::array<char, 8> kMagic = {'t', 'e', 's', 's', '.', 'k', 'v', '\n'};
constexpr size_t kFingerprintDigits = 64;
constexpr DType kKvDTypes[] = {DType::kFloat32, DType::kFloat16, DType::kBFloat16,
                               DType::kFloat8E4M3};

// More than any model has. With kMaxKvPageBytes their product, the bytes of all pages, fits 64
// bits: 2 * 2^12 * 2^28 * 2^22 = 2^63.
constexpr int64_t kMaxLayers = int64_t{1} << 12;
constexpr int64_t kMaxDimension = int64_t{1} << 16;
constexpr int64_t kMaxPageTokens = int64_t{1} << 28;
constexpr int64_t kMaxContext = int64_t{1} << 30;
constexpr uint64_t kMaxTextBytes = uint64_t{1} << 30;

struct RawHeader {
  std::array<char, 8> magic = kMagic;
  uint32_t version = kKvFormatVersion;
  uint32_t header_bytes = kKvHeaderBytes;
  std::array<char, 16> dtype = {};  // its name, zeros behind it
  std::array<char, kFingerprintDigits> fingerprint = {};
  int64_t num_layers = 0, num_kv_heads = 0, page_size = 0, head_dim = 0, num_pages = 0;
  uint64_t text_bytes = 0, scales_bytes = 0;
  uint64_t text_hash = 0, tokens_hash = 0, scales_hash = 0;
  int64_t rope_context = 0;
  std::array<char, 64> reserved = {};  // zeros
  uint64_t header_hash = 0;            // of all bytes before it
};
static_assert(sizeof(RawHeader) == kKvHeaderBytes && std::is_trivially_copyable_v<RawHeader>);

uint64_t hash_of_header(const KvHeaderBytes& bytes) {
  return xxhash64(bytes.data(), offsetof(RawHeader, header_hash));
}

void check_range(const std::string& path, const char* name, int64_t value, int64_t high,
                 int64_t low = 1) {
  CHECK(value >= low && value <= high, path, ": its ", name, " must be ", low, " to ", high,
        ", got ", value);
}

void check_identity(const RawHeader& raw, const KvHeaderBytes& bytes, const std::string& path) {
  CHECK(raw.magic == kMagic, path,
        ": is no file of keys and values, as tessera prefill and /save in a chat write them");
  CHECK(raw.version == kKvFormatVersion, path, ": has version ", raw.version,
        " of the format, this tessera reads version ", kKvFormatVersion);
  CHECK(raw.header_hash == hash_of_header(bytes) && raw.header_bytes == kKvHeaderBytes, path,
        ": is damaged: its header has another checksum than it says");
}

DType parse_dtype(const std::array<char, 16>& name, const std::string& path) {
  const std::string_view text(name.data(), strnlen(name.data(), name.size()));
  for (const DType dtype : kKvDTypes) {
    if (to_string(dtype) == text) return dtype;
  }
  throw Error(concat(path, ": holds keys and values of the type '", printable(text),
                     "', which is not known"));
}

std::string parse_fingerprint(const std::array<char, kFingerprintDigits>& digits,
                              const std::string& path) {
  const std::string text(digits.data(), digits.size());
  CHECK(text.find_first_not_of("0123456789abcdef") == std::string::npos, path,
        ": names its model by other than ", kFingerprintDigits, " hexadecimal digits");
  return text;
}

// The sizes one by one, then what they make together.
void check_sizes(const KvFileHeader& header, const std::string& path) {
  const KvLayout& layout = header.layout;
  check_range(path, "number of layers", layout.num_layers, kMaxLayers);
  check_range(path, "number of KV heads", layout.num_kv_heads, kMaxDimension);
  check_range(path, "page size", layout.page_size, kMaxDimension);
  check_range(path, "head_dim", layout.head_dim, kMaxDimension);
  check_range(path, "stretched context", layout.rope_context, kMaxContext, 0);
  check_range(path, "number of pages", header.num_pages, kMaxPageTokens / layout.page_size);
  CHECK(layout.page_bytes() <= kMaxKvPageBytes, path, ": its pages have ", layout.page_bytes(),
        " bytes, at most ", kMaxKvPageBytes, " are possible");
  CHECK(header.text_bytes <= kMaxTextBytes, path, ": its text has ", header.text_bytes,
        " bytes, at most ", kMaxTextBytes, " are possible");
  CHECK(header.scales_bytes == layout.scales_bytes(), path, ": has ", header.scales_bytes,
        " bytes of scales, ", to_string(layout.dtype), " has ", layout.scales_bytes());
}

}  // namespace

uint64_t KvLayout::page_bytes() const {
  return static_cast<uint64_t>(num_kv_heads) * static_cast<uint64_t>(page_size) *
         static_cast<uint64_t>(head_dim) * size_of(dtype);
}

uint64_t KvLayout::scales_bytes() const {
  if (dtype != DType::kFloat8E4M3) return 0;
  return num_tensors() * static_cast<uint64_t>(num_kv_heads) * sizeof(float);
}

std::string KvLayout::text() const {
  return concat(to_string(dtype), ", ", counted(num_layers, "layer"), ", ",
                counted(num_kv_heads, "KV head"), " of ", head_dim, ", pages of ", page_size,
                " tokens",
                rope_context > 0 ? concat(", RoPE stretched for ", rope_context, " tokens") : "");
}

uint64_t KvFileHeader::scales_begin() const {
  return tokens_begin() + static_cast<uint64_t>(num_tokens()) * sizeof(int32_t);
}

uint64_t KvFileHeader::pages_begin() const {
  const uint64_t end = scales_begin() + scales_bytes;
  return ceil_divide(end, kKvAlignmentBytes) * kKvAlignmentBytes;
}

uint64_t KvFileHeader::page_begin(uint64_t tensor, uint64_t page) const {
  return pages_begin() + (tensor * static_cast<uint64_t>(num_pages) + page) * layout.page_bytes();
}

uint64_t KvFileHeader::hash_begin(uint64_t tensor, uint64_t page) const {
  return page_begin(layout.num_tensors(), 0) +
         (tensor * static_cast<uint64_t>(num_pages) + page) * sizeof(uint64_t);
}

uint64_t KvFileHeader::file_bytes() const { return hash_begin(layout.num_tensors(), 0); }

KvHeaderBytes to_bytes(const KvFileHeader& header) {
  const KvLayout& layout = header.layout;
  RawHeader raw;
  std::ranges::copy(to_string(layout.dtype), raw.dtype.begin());
  CHECK(header.model_fingerprint.size() == kFingerprintDigits, "a fingerprint has ",
        kFingerprintDigits, " digits");
  std::ranges::copy(header.model_fingerprint, raw.fingerprint.begin());
  raw.num_layers = layout.num_layers;
  raw.num_kv_heads = layout.num_kv_heads;
  raw.page_size = layout.page_size;
  raw.head_dim = layout.head_dim;
  raw.rope_context = layout.rope_context;
  raw.num_pages = header.num_pages;
  raw.text_bytes = header.text_bytes;
  raw.scales_bytes = header.scales_bytes;
  raw.text_hash = header.text_hash;
  raw.tokens_hash = header.tokens_hash;
  raw.scales_hash = header.scales_hash;
  KvHeaderBytes bytes;
  std::memcpy(bytes.data(), &raw, sizeof(raw));
  seal(bytes);
  return bytes;
}

bool begins_kv_file(std::string_view bytes) {
  return bytes.starts_with(std::string_view(kMagic.data(), kMagic.size()));
}

KvFileHeader parse_kv_header(const KvHeaderBytes& bytes, const std::string& path) {
  RawHeader raw;
  std::memcpy(&raw, bytes.data(), sizeof(raw));
  check_identity(raw, bytes, path);
  const KvFileHeader header = {.model_fingerprint = parse_fingerprint(raw.fingerprint, path),
                               .layout = {.dtype = parse_dtype(raw.dtype, path),
                                          .num_layers = raw.num_layers,
                                          .num_kv_heads = raw.num_kv_heads,
                                          .page_size = raw.page_size,
                                          .head_dim = raw.head_dim,
                                          .rope_context = raw.rope_context},
                               .num_pages = raw.num_pages,
                               .text_bytes = raw.text_bytes,
                               .scales_bytes = raw.scales_bytes,
                               .text_hash = raw.text_hash,
                               .tokens_hash = raw.tokens_hash,
                               .scales_hash = raw.scales_hash};
  check_sizes(header, path);
  return header;
}

void seal(KvHeaderBytes& bytes) {
  const uint64_t hash = hash_of_header(bytes);
  std::memcpy(bytes.data() + offsetof(RawHeader, header_hash), &hash, sizeof(hash));
}

}  // namespace tessera
