#include "engine/model_fingerprint.h"

#include <algorithm>
#include <filesystem>

#include "engine/text/sha256.h"
#include "model_loaders/checkpoint.h"
#include "model_loaders/file_reader.h"

namespace tessera {
namespace {

constexpr uint64_t kSampleBytes = 1024;
constexpr uint64_t kMaxTextFileBytes = uint64_t{64} << 20;

std::string sample(const Checkpoint& checkpoint, const TensorEntry& tensor) {
  const uint64_t size_bytes = std::min(tensor.size_bytes, kSampleBytes);
  std::string bytes(static_cast<size_t>(size_bytes), '\0');
  checkpoint.read(tensor, bytes.data(), (tensor.size_bytes - size_bytes) / 2, size_bytes);
  return bytes;
}

}  // namespace

std::string model_fingerprint(const EngineOptions& options) {
  const ModelFolder folder = read_model_folder(options);
  std::string parts;
  for (const std::string& path : folder.text_files) {
    const std::string name = std::filesystem::path(path).filename();
    parts += concat(name, ' ', sha256(read_whole_file(path, kMaxTextFileBytes)), '\n');
  }
  const Checkpoint checkpoint = Checkpoint::open(folder.path);
  for (const auto& [name, tensor] : checkpoint.tensors()) {
    parts += concat(name, ' ', to_string(tensor.dtype), ' ', tensor.shape, ' ',
                    sha256(sample(checkpoint, tensor)), '\n');
  }
  return sha256(parts);
}

}  // namespace tessera
