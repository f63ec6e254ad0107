// A whole safetensors file: its length prefix, header and data.
#include <set>

#include "model_loaders/safetensors.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/memory_folder.h"
#include "tests/fuzz/oracle.h"
#include "tests/fuzz/safetensors_seeds.h"

namespace tessera {
namespace {

void read(std::string_view bytes) {
  static const MemoryFolder file("model.safetensors");
  file.replace(bytes);
  const std::vector<TensorEntry> entries = read_safetensors_header(FileReader(file.path()), 0);
  std::set<std::string> names;
  uint64_t end = 8;
  for (const TensorEntry& entry : entries) {
    require(names.insert(entry.name).second, "tensor names are unique");
    require(entry.offset_bytes >= end, "tensors come one behind the other");
    require(
        entry.size_bytes <= bytes.size() && entry.offset_bytes <= bytes.size() - entry.size_bytes,
        "tensors lie in the file");
    require(static_cast<uint64_t>(entry.shape.num_elements()) *
                    static_cast<uint64_t>(size_of(entry.dtype)) ==
                entry.size_bytes,
            "shape and dtype give the size");
    end = entry.offset_bytes + entry.size_bytes;
  }
}

}  // namespace

FuzzTarget safetensors_file_target() {
  return {"safetensors_file", read, safetensors_seeds(), safetensors_dictionary()};
}

}  // namespace tessera
