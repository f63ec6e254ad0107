// The first bytes of a file of keys and values: what it holds, and so how long it is.
//
//   header   kKvHeaderBytes, little-endian, with a checksum of itself at its end
//   text     what the tokens were made of, for whoever wrote the file
//   tokens   int32 [num_pages * page_size]
//   scales   float32 [num_layers, keys and then values, num_kv_heads] of float8_e4m3 pages; other
//            pages have none
//   padding  zeros up to a multiple of kKvAlignmentBytes
//   pages    [num_layers, keys and then values, num_pages] of [num_kv_heads, page_size, head_dim]
//   hashes   uint64 [num_layers, 2, num_pages]: XXH64 of each page
//
// Text, tokens and scales have their checksums in the header. Pages lie as KvCache holds them, so
// that a layer's pages are one long read.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "kernels/tensor/dtype.h"

namespace tessera {

constexpr uint32_t kKvFormatVersion = 1;
constexpr size_t kKvHeaderBytes = 256;
constexpr uint64_t kKvAlignmentBytes = 4096;
// What one read brings; no page is larger.
constexpr uint64_t kMaxKvPageBytes = uint64_t{4} << 20;

// What keys and values must agree in to be used by another engine.
struct KvLayout {
  DType dtype = DType::kFloat32;
  int64_t num_layers = 0;
  int64_t num_kv_heads = 0;
  int64_t page_size = 0;  // tokens
  int64_t head_dim = 0;
  int64_t rope_context = 0;  // tokens for which RoPE was stretched; 0: any context has the same

  uint64_t page_bytes() const;    // of keys, or of values, in one layer
  uint64_t scales_bytes() const;  // of all tensors
  uint64_t num_tensors() const { return static_cast<uint64_t>(num_layers) * 2; }
  // "bfloat16, 32 layers, 8 KV heads of 128, pages of 64 tokens"
  std::string text() const;
  friend bool operator==(const KvLayout&, const KvLayout&) = default;
};

struct KvFileHeader {
  std::string model_fingerprint;  // 64 hexadecimal digits
  KvLayout layout;
  int64_t num_pages = 0;  // all of them full
  uint64_t text_bytes = 0;
  uint64_t scales_bytes = 0;
  uint64_t text_hash = 0, tokens_hash = 0, scales_hash = 0;

  int64_t num_tokens() const { return num_pages * layout.page_size; }
  // Where the sections begin.
  uint64_t tokens_begin() const { return kKvHeaderBytes + text_bytes; }
  uint64_t scales_begin() const;
  uint64_t pages_begin() const;
  // Where a page begins. `tensor` is 2 * layer for keys, 2 * layer + 1 for values.
  uint64_t page_begin(uint64_t tensor, uint64_t page) const;
  uint64_t hash_begin(uint64_t tensor, uint64_t page) const;
  uint64_t file_bytes() const;

  friend bool operator==(const KvFileHeader&, const KvFileHeader&) = default;
};

using KvHeaderBytes = std::array<char, kKvHeaderBytes>;

KvHeaderBytes to_bytes(const KvFileHeader& header);

// Whether a file that begins with `bytes` is one of keys and values, be it damaged or of another
// version.
bool begins_kv_file(std::string_view bytes);

// Throws Error beginning with `path` for what is no header or describes a file that cannot be.
KvFileHeader parse_kv_header(const KvHeaderBytes& bytes, const std::string& path);

// Gives changed bytes the checksum that they need: for tests.
void seal(KvHeaderBytes& bytes);

}  // namespace tessera
