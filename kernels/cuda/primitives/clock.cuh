// What happens when inside kernels: a thread notes the phases that it goes through, and where the
// build has -DTESSERA_CLOCKS=ON the notes are in tessera-clocks.tsv once the process has ended, for
// tests/speed/read_clocks.py. Otherwise all of this is empty and kernels compile as without it.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace tessera {

enum class ClockedKernel : uint16_t { kDecodeStep, kQkv, kGateUp, kLinear, kAttentionDecode };
// The products are in the order of FusedProductIndex.
enum class ClockPhase : uint16_t {
  kQkv,
  kOProj,
  kGateUp,
  kDown,
  kLmHead,
  kAttention,
  kSetUp,        // what needs nothing of the kernel before
  kWait,         // for the kernel before
  kMultiply,     // products and what becomes of their sums
  kCopyWeights,  // until the last copy has been asked for
};

struct ClockRecord {
  uint64_t begin;  // of the GPU's clock for all multiprocessors, ns
  uint64_t end;
  int64_t cycles;  // of the multiprocessor, in between
  ClockedKernel kernel;
  ClockPhase phase;
  uint16_t block;
  uint16_t multiprocessor;
  int32_t detail;  // a layer, or the features of a product's input
  int32_t unused;
};

// In device memory: the last `capacity` records, a power of two.
struct ClockBuffer {
  ClockRecord* records;
  unsigned long long* num_records;
  uint64_t capacity;
};

#ifdef TESSERA_CLOCKS

ClockBuffer clock_buffer();  // device/clocks.cu

// The kernels of one source file find the buffer here.
static __device__ ClockBuffer attached_clock_buffer;

// To be called before kernels of the including file are launched; does something the first time.
// That must not be while a CUDA graph is recorded.
static inline void attach_clocks() {
  static const cudaError_t attached = [] {
    const ClockBuffer buffer = clock_buffer();
    return cudaMemcpyToSymbol(attached_clock_buffer, &buffer, sizeof(buffer));
  }();
  if (attached != cudaSuccess) __builtin_trap();
}

// The phases of one thread, each from the end of the one before. Asks for the room of all of them
// at once and at first: the answer takes most of a microsecond.
class PhaseClock {
 public:
  __device__ PhaseClock(ClockedKernel kernel, bool is_recording, int num_phases)
      : is_recording_(is_recording), kernel_(kernel) {
    if (!is_recording_) return;
    next_ =
        atomicAdd(attached_clock_buffer.num_records, static_cast<unsigned long long>(num_phases));
    last_ = next_ + num_phases;
    begin_ = now();
    begin_cycles_ = clock64();
  }
  __device__ void end_phase(ClockPhase phase, int detail = 0) {
    if (!is_recording_ || next_ == last_) return;
    const uint64_t end = now();
    const int64_t end_cycles = clock64();
    uint32_t multiprocessor;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(multiprocessor));
    attached_clock_buffer.records[next_++ & (attached_clock_buffer.capacity - 1)] = {
        .begin = begin_,
        .end = end,
        .cycles = end_cycles - begin_cycles_,
        .kernel = kernel_,
        .phase = phase,
        .block = static_cast<uint16_t>(blockIdx.x),
        .multiprocessor = static_cast<uint16_t>(multiprocessor),
        .detail = detail,
        .unused = 0};
    begin_ = end;
    begin_cycles_ = end_cycles;
  }

 private:
  __device__ static uint64_t now() {
    uint64_t time;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time)::"memory");
    return time;
  }

  bool is_recording_;
  ClockedKernel kernel_;
  uint64_t next_ = 0;  // record
  uint64_t last_ = 0;
  uint64_t begin_ = 0;
  int64_t begin_cycles_ = 0;
};

#else

inline void attach_clocks() {}

class PhaseClock {
 public:
  __device__ PhaseClock(ClockedKernel, bool, int) {}
  __device__ void end_phase(ClockPhase, int = 0) {}
};

#endif

}  // namespace tessera
