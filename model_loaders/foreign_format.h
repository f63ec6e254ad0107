// Recognising files that are not what their name says.
#pragma once

#include <optional>
#include <string_view>

#include "kernels/tensor/check.h"

namespace tessera {

// What a file that should hold safetensors is instead, by its first bytes: a Git LFS pointer, a web
// page, a pickle, an archive, GGUF. Nothing when they say nothing.
std::optional<Error> recognise_foreign_format(std::string_view first_bytes,
                                              const std::string& path);

}  // namespace tessera
