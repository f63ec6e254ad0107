#include "model_loaders/foreign_format.h"

#include "model_loaders/printable.h"

namespace tessera {

std::optional<Error> recognise_foreign_format(std::string_view first_bytes,
                                              const std::string& path) {
  using std::string_view_literals::operator""sv;
  if (first_bytes.starts_with("version https://git-lfs"sv)) {
    return Error(path + ": this is a Git LFS pointer, not weights",
                 "run git lfs pull in the model folder");
  }
  if (first_bytes.starts_with("GGUF"sv)) {
    return Error(path + ": this is a GGUF file, not safetensors",
                 "use the model's original safetensors files");
  }
  // A pickle starts with opcode PROTO and its version.
  const bool is_pickle = first_bytes.size() >= 2 && first_bytes[0] == '\x80' &&
                         first_bytes[1] >= 2 && first_bytes[1] <= 5;
  if (is_pickle || first_bytes.starts_with("PK\x03\x04"sv)) {
    return Error(path + ": PyTorch pickle is not supported (unsafe: it can run code)",
                 "use a safetensors version of the model");
  }
  if (first_bytes.starts_with('<') || first_bytes.starts_with("{\""sv)) {
    return Error(concat(path, ": starts with '", printable(first_bytes.substr(0, 4)),
                        "': looks like a failed download"),
                 "download the model again");
  }
  return std::nullopt;
}

}  // namespace tessera
