// Recognising files that are not what their name says, and folders of other formats.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kernels/tensor/check.h"

namespace tessera {

// A Git LFS pointer, which stands where git has not fetched the file itself. `expected` is what the
// file should hold.
std::optional<Error> recognise_lfs_pointer(std::string_view first_bytes, const std::string& path,
                                           std::string_view expected);

// What a file that should hold safetensors is instead, by its first bytes: a Git LFS pointer, a web
// page, a pickle, an archive, GGUF. Nothing when they say nothing.
std::optional<Error> recognise_foreign_format(std::string_view first_bytes,
                                              const std::string& path);

// The same of a file that somebody gave as the model: weights of another format.
std::optional<Error> recognise_weights_file(const std::string& path);

// Why a folder cannot be loaded that holds weights of another format and no safetensors.
std::optional<Error> recognise_foreign_folder(const std::string& folder);

// A JSON file of a model folder; throws when it has more than `max_bytes`, and where a download has
// left something else in its place: nothing, a Git LFS pointer, a web page.
std::string read_json_file(const std::string& path, uint64_t max_bytes);

}  // namespace tessera
