// malloc and its relatives, for the whole process: where the system gives no memory, they end it.
//
// Libraries do not look at what malloc returns everywhere. oneDNN, for one, runs the code that it
// generates whether or not it got memory for it: one failing call in a run ended in a segmentation
// fault in nine of 1,500 runs. A definition in the executable comes before all others, so every
// library calls these. They pass on to the next definition, be it glibc's or that of a library in
// LD_PRELOAD. Its aligned_alloc stays: by that, big blocks are allocated (weights, KV pages,
// activations), whose refusal is an error with their sizes.
//
// Not part of a build with sanitizers, which have definitions of their own.
#include <dlfcn.h>
#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <cstddef>

#include "apps/process/out_of_memory.h"

namespace tessera {
namespace {

// The next definition of a function, looked up at the first call: that is made before any
// constructor has run, even of a static variable.
template <typename Function>
class NextDefinition {
 public:
  constexpr explicit NextDefinition(const char* name) : name_(name) {}

  template <typename... Arguments>
  auto operator()(Arguments... arguments) {
    Function function = function_.load(std::memory_order_relaxed);
    if (function == nullptr) {
      function = reinterpret_cast<Function>(dlsym(RTLD_NEXT, name_));
      function_.store(function, std::memory_order_relaxed);
    }
    return function(arguments...);
  }

 private:
  const char* name_;
  std::atomic<Function> function_ = nullptr;
};

constinit NextDefinition<void* (*)(size_t)> next_malloc("malloc");
constinit NextDefinition<void* (*)(size_t, size_t)> next_calloc("calloc");
constinit NextDefinition<void* (*)(void*, size_t)> next_realloc("realloc");
constinit NextDefinition<void* (*)(void*, size_t, int, int, int, off_t)> next_mmap("mmap");
constinit NextDefinition<int (*)(void**, size_t, size_t)> next_posix_memalign("posix_memalign");

// Nothing is a valid answer to who asks for nothing.
void* checked(void* memory, size_t size) {
  if (memory == nullptr && size != 0) [[unlikely]] {
    end_out_of_memory();
  }
  return memory;
}

}  // namespace
}  // namespace tessera

extern "C" {

void* malloc(size_t size) noexcept { return tessera::checked(tessera::next_malloc(size), size); }

void* calloc(size_t count, size_t size) noexcept {
  return tessera::checked(tessera::next_calloc(count, size), count == 0 ? 0 : size);
}

void* realloc(void* old, size_t size) noexcept {
  return tessera::checked(tessera::next_realloc(old, size), size);
}

int posix_memalign(void** memory, size_t alignment, size_t size) noexcept {
  const int problem = tessera::next_posix_memalign(memory, alignment, size);
  if (problem == ENOMEM) tessera::end_out_of_memory();
  return problem;
}

// oneDNN maps memory for the code that it generates, and runs it whether or not it got any.
void* mmap(void* address, size_t size, int protection, int flags, int descriptor,
           off_t offset) noexcept {
  void* memory = tessera::next_mmap(address, size, protection, flags, descriptor, offset);
  const bool is_to_write_to = (protection & PROT_WRITE) != 0 && (flags & MAP_ANONYMOUS) != 0;
  if (memory == MAP_FAILED && errno == ENOMEM && is_to_write_to) tessera::end_out_of_memory();
  return memory;
}

}  // extern "C"
