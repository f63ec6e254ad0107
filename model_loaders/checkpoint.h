// The weights of a model folder: one safetensors file or several under an index.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/tensor/check.h"
#include "kernels/tensor/shape.h"
#include "model_loaders/tensor_entry.h"

namespace tessera {

class Checkpoint {
 public:
  // Opens `model.safetensors`, else the files of `model.safetensors.index.json`, and validates
  // every header before any data is touched. Throws Error with path and numbers.
  static Checkpoint open(const std::string& folder);

  // For who shows what a folder has: the same, but where files of the index are missing it opens
  // the others, and says in `missing` what open() would have thrown.
  static Checkpoint open_what_is_there(const std::string& folder, std::optional<Error>& missing);

  Checkpoint(Checkpoint&&) noexcept;
  Checkpoint& operator=(Checkpoint&&) noexcept;
  ~Checkpoint();

  // All tensors, by name.
  const std::map<std::string, TensorEntry, std::less<>>& tensors() const;

  // The entry, or nullptr.
  const TensorEntry* find(std::string_view name) const;

  // The entry, checked against what the caller expects. Throws when it is missing or its shape
  // differs; both shapes are in the message.
  const TensorEntry& expect(std::string_view name, const Shape& shape) const;

  // Copies bytes [begin_bytes, begin_bytes + size) of the tensor to `destination`. Thread-safe.
  // Throws when the file has shrunk since open ("file changed during load").
  void read(const TensorEntry& entry, void* destination, uint64_t begin_bytes,
            uint64_t size_bytes) const;

  // Paths of the files, in the order of TensorEntry::file_index.
  const std::vector<std::string>& file_paths() const;

  // Bytes of all tensors together.
  uint64_t total_bytes() const;

  // Warnings for the person (unmapped tensors, total_size mismatch), one sentence each.
  const std::vector<std::string>& warnings() const;

 private:
  struct Impl;
  explicit Checkpoint(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tessera
