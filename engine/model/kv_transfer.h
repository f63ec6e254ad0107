// Keys and values between files and the pages of the KV cache.
//
// Tokens fill whole pages, so that a file's pages are the cache's, byte by byte: consecutive ones
// travel in parts of up to kMaxUploadPartBytes, which several threads read and check.
#pragma once

#include <cstdint>
#include <span>

#include "engine/model/load_progress.h"
#include "kernels/attention_params.h"
#include "kernels/device.h"
#include "model_loaders/kv_file.h"

namespace tessera {

// Fills the pages, one for each of the file's, in every layer. The file's layout is that of
// `layers`. Throws Error when the file is damaged: the pages' contents are then unspecified.
void read_kv_pages(const KvFile& file, std::span<const int32_t> pages,
                   std::span<const KvPages> layers, Device& device, const LoadProgress& progress);

// Hands the pages of every layer to the writer, once the device has computed them.
void write_kv_pages(std::span<const int32_t> pages, std::span<const KvPages> layers, Device& device,
                    KvFileWriter& writer, const LoadProgress& progress);

}  // namespace tessera
