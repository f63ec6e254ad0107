#include "model_loaders/foreign_format.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "model_loaders/file_reader.h"
#include "model_loaders/printable.h"

namespace tessera {
namespace {

using std::string_view_literals::operator""sv;

constexpr size_t kFirstBytes = 64;
constexpr const char* kGgufHint =
    "tessera reads safetensors: use the model that the GGUF file was made from";
constexpr const char* kPickleHint = "use a safetensors version of the model";
constexpr const char* kDownloadHint = "download the model again";

Error failed_download(std::string_view first_bytes, const std::string& path) {
  return Error(concat(path, ": starts with '", printable(first_bytes.substr(0, 4)),
                      "': looks like a failed download"),
               kDownloadHint);
}

std::optional<Error> recognise_other_weights(std::string_view first_bytes,
                                             const std::string& path) {
  if (first_bytes.starts_with("GGUF"sv)) {
    return Error(path + ": this is a GGUF file, not safetensors", kGgufHint);
  }
  // A pickle starts with opcode PROTO and its version.
  const bool is_pickle = first_bytes.size() >= 2 && first_bytes[0] == '\x80' &&
                         first_bytes[1] >= 2 && first_bytes[1] <= 5;
  if (is_pickle || first_bytes.starts_with("PK\x03\x04"sv)) {
    return Error(path + ": PyTorch pickle is not supported (unsafe: it can run code)", kPickleHint);
  }
  return std::nullopt;
}

}  // namespace

std::optional<Error> recognise_lfs_pointer(std::string_view first_bytes, const std::string& path,
                                           std::string_view expected) {
  if (!first_bytes.starts_with("version https://git-lfs"sv)) return std::nullopt;
  return Error(concat(path, ": this is a Git LFS pointer, not ", expected),
               "run git lfs pull in the model folder");
}

std::optional<Error> recognise_foreign_format(std::string_view first_bytes,
                                              const std::string& path) {
  if (auto error = recognise_lfs_pointer(first_bytes, path, "weights")) return error;
  if (auto error = recognise_other_weights(first_bytes, path)) return error;
  if (first_bytes.starts_with('<') || first_bytes.starts_with("{\""sv)) {
    return failed_download(first_bytes, path);
  }
  return std::nullopt;
}

std::optional<Error> recognise_weights_file(const std::string& path) {
  const FileReader file(path);
  std::string first_bytes(std::min<uint64_t>(file.size_bytes(), kFirstBytes), '\0');
  file.read(first_bytes.data(), 0, first_bytes.size());
  if (auto error = recognise_lfs_pointer(first_bytes, path, "weights")) return error;
  return recognise_other_weights(first_bytes, path);
}

std::optional<Error> recognise_foreign_folder(const std::string& folder) {
  std::optional<Error> found;
  std::error_code problem;
  for (const auto& entry : std::filesystem::directory_iterator(folder, problem)) {
    const std::string extension = entry.path().extension().string();
    const std::string name = printable(entry.path().filename().string());
    if (extension == ".safetensors") return std::nullopt;
    if (extension == ".bin" || extension == ".pt" || extension == ".pth") {
      found = Error(concat(folder, ": has only ", name,
                           ": PyTorch pickle is not supported (unsafe: it can run code)"),
                    kPickleHint);
    }
    if (extension == ".gguf") {
      found = Error(concat(folder, ": has only GGUF weights, which are not supported: ", name),
                    kGgufHint);
    }
  }
  return found;
}

std::string read_json_file(const std::string& path, uint64_t max_bytes) {
  std::string text = read_whole_file(path, max_bytes);
  if (text.empty()) throw Error(path + ": file is empty; expected JSON", kDownloadHint);
  if (const auto error = recognise_lfs_pointer(text, path, "JSON")) throw *error;
  if (text.starts_with('<')) throw failed_download(text, path);
  return text;
}

}  // namespace tessera
