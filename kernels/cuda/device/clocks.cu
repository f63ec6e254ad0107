// The buffer of primitives/clock.cuh and its file. Built with -DTESSERA_CLOCKS=ON only.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "kernels/cuda/device/cuda_check.h"
#include "kernels/cuda/device/memory.h"
#include "kernels/cuda/primitives/clock.cuh"

namespace tessera {
namespace {

constexpr uint64_t kCapacity = uint64_t{1} << 20;
constexpr const char* kFile = "tessera-clocks.tsv";
constexpr const char* kKernels[] = {"decode_step", "qkv", "gate_up", "linear", "attention_decode"};
constexpr const char* kPhases[] = {"qkv",       "o_proj", "gate_up", "down",     "lm_head",
                                   "attention", "set_up", "wait",    "multiply", "copy_weights"};

void write_records(const ClockBuffer& buffer) {
  unsigned long long num_records = 0;
  std::vector<ClockRecord> records(buffer.capacity);
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaMemcpy(&num_records, buffer.num_records, sizeof(num_records), cudaMemcpyDefault));
  CUDA_CHECK(cudaMemcpy(records.data(), buffer.records, records.size() * sizeof(ClockRecord),
                        cudaMemcpyDefault));
  std::FILE* const file = std::fopen(kFile, "w");
  CHECK(file != nullptr, "cannot write ", kFile);
  std::fprintf(file, "kernel\tphase\tdetail\tblock\tmultiprocessor\tbegin_ns\tend_ns\tcycles\n");
  const uint64_t first = num_records > buffer.capacity ? num_records - buffer.capacity : 0;
  for (uint64_t i = first; i < num_records; ++i) {
    const ClockRecord& record = records[i & (buffer.capacity - 1)];
    if (record.end == 0) continue;  // room that was asked for and not needed
    std::fprintf(
        file, "%s\t%s\t%d\t%d\t%d\t%llu\t%llu\t%lld\n", kKernels[static_cast<int>(record.kernel)],
        kPhases[static_cast<int>(record.phase)], record.detail, record.block, record.multiprocessor,
        static_cast<unsigned long long>(record.begin), static_cast<unsigned long long>(record.end),
        static_cast<long long>(record.cycles));
  }
  std::fclose(file);
}

}  // namespace

ClockBuffer clock_buffer() {
  static const ClockBuffer buffer = [] {
    const size_t bytes = kCapacity * sizeof(ClockRecord);
    // Kept until the process ends, and read then.
    static const Buffer memory = allocate_device_memory(bytes + 256, "clock readings");
    CUDA_CHECK(cudaMemset(memory.data(), 0, memory.size_bytes()));
    auto* const begin = static_cast<unsigned char*>(memory.data());
    return ClockBuffer{.records = reinterpret_cast<ClockRecord*>(begin),
                       .num_records = reinterpret_cast<unsigned long long*>(begin + bytes),
                       .capacity = kCapacity};
  }();
  static const int registered = std::atexit([] { write_records(clock_buffer()); });
  (void)registered;
  return buffer;
}

}  // namespace tessera
