// A library that the CUDA driver loads into a process and that writes down every kernel, copy and
// fill that the process runs on the GPU:
//
//   CUDA_INJECTION64_PATH=build/libkernel_times.so TESSERA_KERNEL_TIMES=times.tsv tessera bench ...
//   python3 tests/speed/read_kernel_times.py times.tsv
//
// A line each: begin and end in nanoseconds since the first, the grid, and the kernel's mangled
// name. The process must end by itself. Nothing is rebuilt for it, and a step of 64 sequences takes
// 0.5 % longer (H200). Through CUPTI, CUDA's library for profilers.
#include <cupti.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <unordered_set>
#include <vector>

namespace {

constexpr size_t kBufferBytes = size_t{8} << 20;
constexpr size_t kBufferAlignment = 8;

struct Activity {
  uint64_t begin_ns;
  uint64_t end_ns;
  int grid[3];  // blocks; of copies and fills the bytes, in grid[0]
  const std::string* name;
};

struct Log {
  std::mutex mutex;  // CUPTI hands over buffers on threads of its own
  std::unordered_set<std::string> names;
  std::vector<Activity> activities;

  void add(uint64_t begin_ns, uint64_t end_ns, int x, int y, int z, const char* name) {
    activities.push_back({begin_ns, end_ns, {x, y, z}, &*names.emplace(name).first});
  }
};

// Lives as long as the process: buffers come back while it exits.
Log& activity_log() {
  static Log& log = *new Log;
  return log;
}

void add(Log& log, const CUpti_Activity& record) {
  if (record.kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
    const auto& kernel = reinterpret_cast<const CUpti_ActivityKernel9&>(record);
    log.add(kernel.start, kernel.end, kernel.gridX, kernel.gridY, kernel.gridZ, kernel.name);
  } else if (record.kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
    const auto& copy = reinterpret_cast<const CUpti_ActivityMemcpy5&>(record);
    log.add(copy.start, copy.end, static_cast<int>(copy.bytes), 1, 1, "memcpy");
  } else if (record.kind == CUPTI_ACTIVITY_KIND_MEMSET) {
    const auto& fill = reinterpret_cast<const CUpti_ActivityMemset4&>(record);
    log.add(fill.start, fill.end, static_cast<int>(fill.bytes), 1, 1, "memset");
  }
}

void give_buffer(uint8_t** buffer, size_t* size, size_t* max_records) {
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(kBufferAlignment, kBufferBytes));
  *size = *buffer == nullptr ? 0 : kBufferBytes;
  *max_records = 0;  // as many as there is room for
}

void take_buffer(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid_bytes) {
  Log& log = activity_log();
  const std::lock_guard lock(log.mutex);
  CUpti_Activity* record = nullptr;
  while (cuptiActivityGetNextRecord(buffer, valid_bytes, &record) == CUPTI_SUCCESS) {
    add(log, *record);
  }
  std::free(buffer);
}

void write_log() {
  cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  Log& log = activity_log();
  const std::lock_guard lock(log.mutex);
  const char* const path = std::getenv("TESSERA_KERNEL_TIMES");
  std::FILE* const file = std::fopen(path == nullptr ? "kernel-times.tsv" : path, "w");
  if (file == nullptr) {
    std::perror("kernel_times");
    return;
  }
  std::ranges::sort(log.activities, {}, &Activity::begin_ns);
  std::fputs("begin_ns\tend_ns\tgrid\tname\n", file);
  for (const auto& [begin_ns, end_ns, grid, name] : log.activities) {
    const uint64_t first = log.activities.front().begin_ns;
    std::fprintf(
        file, "%llu\t%llu\t%dx%dx%d\t%s\n", static_cast<unsigned long long>(begin_ns - first),
        static_cast<unsigned long long>(end_ns - first), grid[0], grid[1], grid[2], name->c_str());
  }
  std::fclose(file);
}

}  // namespace

// What the driver calls once it has loaded the library; other than 0: it may stay.
extern "C" int InitializeInjection() {
  const bool is_ready =
      cuptiActivityRegisterCallbacks(give_buffer, take_buffer) == CUPTI_SUCCESS &&
      cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) == CUPTI_SUCCESS &&
      cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY) == CUPTI_SUCCESS &&
      cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMSET) == CUPTI_SUCCESS;
  if (is_ready) {
    std::atexit(write_log);
  } else {
    std::fputs("kernel_times: this machine does not let CUPTI watch kernels\n", stderr);
  }
  return is_ready ? 1 : 0;
}
