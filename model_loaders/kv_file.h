// Files of keys and values: what a model has computed of a text, to be read instead of computed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model_loaders/file_reader.h"
#include "model_loaders/kv_file_header.h"

namespace tessera {

// An open file whose header, length, text, tokens and scales have been checked. Pages are checked
// as they are read.
class KvFile {
 public:
  // Throws Error naming the file and the numbers. Nothing is allocated by a size that the file's
  // own length does not bear out.
  static KvFile open(const std::string& path);

  const std::string& path() const { return reader_.path(); }
  const KvFileHeader& header() const { return header_; }
  const std::string& text() const { return text_; }
  const std::vector<int32_t>& tokens() const { return tokens_; }
  // As KvFileHeader lays them out; empty where pages have none.
  const std::vector<float>& scales() const { return scales_; }

  // Fills `target` with pages [begin, end) of a tensor, numbered as in KvFileHeader::page_begin.
  // Thread-safe. Throws Error when a page is not what was written.
  void read_pages(uint64_t tensor, uint64_t begin, uint64_t end, std::byte* target) const;

 private:
  KvFile(FileReader reader, const KvFileHeader& header);

  // `size_bytes` are at `begin` and have the checksum `hash`.
  void read_checked(void* target, uint64_t begin, uint64_t size_bytes, uint64_t hash,
                    const char* name) const;

  FileReader reader_;
  KvFileHeader header_;
  std::string text_;
  std::vector<int32_t> tokens_;
  std::vector<float> scales_;
};

// Whether the file is one of keys and values, be it damaged or of another version. Throws Error
// when it cannot be read.
bool is_kv_file(const std::string& path);

// What takes the bytes of a file in their order; what it throws ends the writing.
using ByteSink = std::function<void(std::string_view bytes)>;

// Writes such a file from front to back.
class KvFileWriter {
 public:
  // `header` says fingerprint and layout; tokens fill whole pages, and there are as many scales as
  // the layout has. Writes all that precedes the pages.
  KvFileWriter(KvFileHeader header, std::string_view text, std::span<const int32_t> tokens,
               std::span<const float> scales, ByteSink write);

  const KvFileHeader& header() const { return header_; }

  // The next pages, in the order of the file: whole ones, any number of them.
  void write_pages(std::span<const std::byte> pages);

  // After the last page.
  void finish();

 private:
  KvFileHeader header_;
  ByteSink write_;
  std::vector<uint64_t> hashes_;  // of the pages so far
};

}  // namespace tessera
