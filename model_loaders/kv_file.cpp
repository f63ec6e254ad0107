#include "model_loaders/kv_file.h"

#include <algorithm>
#include <utility>

#include "kernels/tensor/check.h"
#include "model_loaders/xxhash64.h"

namespace tessera {
namespace {

KvFileHeader read_header(const FileReader& reader) {
  const std::string& path = reader.path();
  const uint64_t size_bytes = reader.size_bytes();
  CHECK(size_bytes >= kKvHeaderBytes, path, ": has ", counted(size_bytes, "byte"),
        ", a file of keys and values has at least ", kKvHeaderBytes);
  KvHeaderBytes bytes;
  reader.read(bytes.data(), 0, bytes.size());
  const KvFileHeader header = parse_kv_header(bytes, path);
  CHECK(header.file_bytes() == size_bytes, path, ": has ", counted(size_bytes, "byte"),
        ", its header describes ", header.file_bytes());
  return header;
}

template <typename Values>
std::string_view bytes_of(const Values& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(values[0])};
}

uint64_t hash_of(std::string_view bytes) { return xxhash64(bytes.data(), bytes.size()); }

}  // namespace

KvFile KvFile::open(const std::string& path) {
  FileReader reader(path);
  const KvFileHeader header = read_header(reader);
  return KvFile(std::move(reader), header);
}

KvFile::KvFile(FileReader reader, const KvFileHeader& header)
    : reader_(std::move(reader)), header_(header) {
  text_.resize(header_.text_bytes);
  read_checked(text_.data(), kKvHeaderBytes, header_.text_bytes, header_.text_hash, "text");
  tokens_.resize(static_cast<size_t>(header_.num_tokens()));
  read_checked(tokens_.data(), header_.tokens_begin(), tokens_.size() * sizeof(int32_t),
               header_.tokens_hash, "tokens");
  scales_.resize(header_.scales_bytes / sizeof(float));
  read_checked(scales_.data(), header_.scales_begin(), header_.scales_bytes, header_.scales_hash,
               "scales");
}

void KvFile::read_checked(void* target, uint64_t begin, uint64_t size_bytes, uint64_t hash,
                          const char* name) const {
  reader_.read(target, begin, size_bytes);
  CHECK(xxhash64(target, size_bytes) == hash, path(), ": is damaged: the checksum of its ", name,
        ", at bytes ", begin, " to ", begin + size_bytes, ", is not the one in its header");
}

void KvFile::read_pages(uint64_t tensor, uint64_t begin, uint64_t end, std::byte* target) const {
  const uint64_t page_bytes = header_.layout.page_bytes();
  const uint64_t first_byte = header_.page_begin(tensor, begin);
  std::vector<uint64_t> hashes(end - begin);
  reader_.read(target, first_byte, hashes.size() * page_bytes);
  reader_.read(hashes.data(), header_.hash_begin(tensor, begin), hashes.size() * sizeof(uint64_t));
  for (size_t i = 0; i < hashes.size(); ++i) {
    CHECK(xxhash64(target + i * page_bytes, page_bytes) == hashes[i], path(), ": is damaged: page ",
          begin + i, " of ", tensor % 2 == 0 ? "keys" : "values", " of layer ", tensor / 2,
          ", at byte ", first_byte + i * page_bytes, ", has another checksum than was written");
  }
}

bool is_kv_file(const std::string& path) {
  const FileReader reader(path);
  std::string bytes(std::min<uint64_t>(reader.size_bytes(), kKvHeaderBytes), '\0');
  reader.read(bytes.data(), 0, bytes.size());
  return begins_kv_file(bytes);
}

KvFileWriter::KvFileWriter(KvFileHeader header, std::string_view text,
                           std::span<const int32_t> tokens, std::span<const float> scales,
                           ByteSink write)
    : header_(std::move(header)), write_(std::move(write)) {
  const KvLayout& layout = header_.layout;
  CHECK(layout.page_bytes() <= kMaxKvPageBytes, "pages of ", layout.page_bytes(),
        " bytes cannot be kept in a file, at most ", kMaxKvPageBytes,
        " are possible: see --page-size");
  const std::string_view token_bytes = bytes_of(tokens);
  const std::string_view scale_bytes = bytes_of(scales);
  CHECK(scale_bytes.size() == layout.scales_bytes(), counted(scales.size(), "scale"), " for ",
        layout.text());
  header_.num_pages = static_cast<int64_t>(tokens.size()) / layout.page_size;
  header_.text_bytes = text.size();
  header_.text_hash = hash_of(text);
  header_.tokens_hash = hash_of(token_bytes);
  header_.scales_bytes = scale_bytes.size();
  header_.scales_hash = hash_of(scale_bytes);
  const KvHeaderBytes bytes = to_bytes(header_);
  write_({bytes.data(), bytes.size()});
  write_(text);
  write_(token_bytes);
  write_(scale_bytes);
  const uint64_t scales_end = header_.scales_begin() + header_.scales_bytes;
  write_(std::string(header_.pages_begin() - scales_end, '\0'));
}

void KvFileWriter::write_pages(std::span<const std::byte> pages) {
  const uint64_t page_bytes = header_.layout.page_bytes();
  for (uint64_t begin = 0; begin < pages.size(); begin += page_bytes) {
    hashes_.push_back(xxhash64(pages.data() + begin, page_bytes));
  }
  write_(bytes_of(pages));
}

void KvFileWriter::finish() { write_(bytes_of(hashes_)); }

}  // namespace tessera
