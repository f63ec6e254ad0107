#include "engine/model/kv_transfer.h"

#include <vector>

namespace tessera {
namespace {

static_assert(kMaxKvPageBytes <= kMaxUploadPartBytes);

// Pages of one tensor that lie side by side in the cache as in the file.
struct PageRun {
  uint64_t tensor = 0;          // 2 * layer for keys, 2 * layer + 1 for values
  uint64_t begin = 0, end = 0;  // of the file's pages
  Tensor pages;                 // in the cache

  uint64_t size_bytes() const { return pages.size_bytes(); }
};

// The end of the run of consecutive page numbers from `begin`, of at most `max_pages`.
size_t run_end(std::span<const int32_t> pages, size_t begin, size_t max_pages) {
  size_t end = begin + 1;
  while (end < pages.size() && end - begin < max_pages && pages[end] == pages[end - 1] + 1) ++end;
  return end;
}

// All pages of all tensors in the order of the file.
std::vector<PageRun> page_runs(std::span<const int32_t> pages, std::span<const KvPages> layers) {
  std::vector<PageRun> runs;
  for (uint64_t tensor = 0; tensor < 2 * layers.size(); ++tensor) {
    const KvPages& layer = layers[tensor / 2];
    const Tensor& all = tensor % 2 == 0 ? layer.keys : layer.values;
    const size_t max_pages = kMaxUploadPartBytes / all.slice(0, 1).size_bytes();
    for (size_t begin = 0, end = 0; begin < pages.size(); begin = end) {
      end = run_end(pages, begin, max_pages);
      const int64_t first = pages[begin];
      runs.push_back(
          {tensor, begin, end, all.slice(first, first + static_cast<int64_t>(end - begin))});
    }
  }
  return runs;
}

uint64_t size_bytes_of(std::span<const PageRun> runs) {
  uint64_t bytes = 0;
  for (const PageRun& run : runs) bytes += run.size_bytes();
  return bytes;
}

}  // namespace

void read_kv_pages(const KvFile& file, std::span<const int32_t> pages,
                   std::span<const KvPages> layers, Device& device, const LoadProgress& progress) {
  const std::vector<PageRun> runs = page_runs(pages, layers);
  const uint64_t total_bytes = size_bytes_of(runs);
  uint64_t done_bytes = 0;
  std::vector<UploadPart> parts;
  for (const PageRun& run : runs) parts.push_back({run.pages, run.pages.dtype});
  const auto read = [&](size_t index, std::byte* target) {
    file.read_pages(runs[index].tensor, runs[index].begin, runs[index].end, target);
  };
  const auto on_read = [&](size_t index) {
    done_bytes += runs[index].size_bytes();
    if (progress) progress(done_bytes, total_bytes);
  };
  // A step that still runs may write to these pages: their sequence may just have ended.
  device.synchronize();
  device.upload_parts(parts, read, on_read);
}

void write_kv_pages(std::span<const int32_t> pages, std::span<const KvPages> layers, Device& device,
                    KvFileWriter& writer, const LoadProgress& progress) {
  const std::vector<PageRun> runs = page_runs(pages, layers);
  const uint64_t total_bytes = size_bytes_of(runs);
  uint64_t done_bytes = 0;
  std::vector<std::byte> bytes;
  for (const PageRun& run : runs) {
    bytes.resize(run.size_bytes());
    device.download({bytes.data(), run.pages.dtype, DeviceType::kCpu, run.pages.shape}, run.pages);
    writer.write_pages(bytes);
    done_bytes += bytes.size();
    if (progress) progress(done_bytes, total_bytes);
  }
}

}  // namespace tessera
