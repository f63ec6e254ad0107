// A library for LD_PRELOAD whose functions fail where fault_point.h says, as full memory or a
// broken disk would. Otherwise they do what glibc's do: by the kernel or under glibc's own names
// for malloc, which need no looking up, so that they work from the first call of a process on.
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>

#include "tests/harness/faults/fault_point.h"

namespace {

// The definition that would be called without this library.
template <typename Function>
Function* next_definition(Function* /*type*/, const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

// `arguments` holds the mode, where the flags say that there is one.
int open_file(int folder, const char* path, int flags, va_list arguments) {
  if (fails("open", path)) return -1;
  const bool has_mode = (flags & (O_CREAT | __O_TMPFILE)) != 0;
  const int mode = has_mode ? va_arg(arguments, int) : 0;
  return static_cast<int>(syscall(SYS_openat, folder, path, flags, mode));
}

int sync_file(long system_call, int descriptor) {
  if (transfer("sync", descriptor) != Transfer::kAll) return -1;
  return static_cast<int>(syscall(system_call, descriptor));
}

}  // namespace

extern "C" {

// --- memory: blocks of any size that the heap gives ------------------------------------------

void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* old, size_t size);
void* __libc_memalign(size_t alignment, size_t size);

void* malloc(size_t size) noexcept { return fails("memory") ? nullptr : __libc_malloc(size); }

void* calloc(size_t count, size_t size) noexcept {
  return fails("memory") ? nullptr : __libc_calloc(count, size);
}

void* realloc(void* old, size_t size) noexcept {
  return fails("memory") ? nullptr : __libc_realloc(old, size);
}

// --- block: memory that is aligned or mapped --------------------------------------------------

void* aligned_alloc(size_t alignment, size_t size) noexcept {
  return fails("block") ? nullptr : __libc_memalign(alignment, size);
}

void* memalign(size_t alignment, size_t size) noexcept { return aligned_alloc(alignment, size); }

int posix_memalign(void** memory, size_t alignment, size_t size) noexcept {
  const int errno_before = errno;
  void* allocated = aligned_alloc(alignment, size);
  errno = errno_before;
  if (allocated == nullptr) return ENOMEM;
  *memory = allocated;
  return 0;
}

// Of a file it is a read.
void* mmap(void* address, size_t size, int protection, int flags, int descriptor,
           off_t offset) noexcept {
  const bool is_block = (flags & MAP_ANONYMOUS) != 0;
  if (is_block ? fails("block") : transfer("read", descriptor) == Transfer::kNone) {
    return MAP_FAILED;
  }
  return reinterpret_cast<void*>(
      syscall(SYS_mmap, address, size, protection, flags, descriptor, offset));
}

void* mmap64(void* address, size_t size, int protection, int flags, int descriptor,
             off64_t offset) noexcept {
  return mmap(address, size, protection, flags, descriptor, offset);
}

// --- open ---------------------------------------------------------------------------------------

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const int descriptor = open_file(AT_FDCWD, path, flags, arguments);
  va_end(arguments);
  return descriptor;
}

int openat(int folder, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const int descriptor = open_file(folder, path, flags, arguments);
  va_end(arguments);
  return descriptor;
}

__attribute__((alias("open"))) int open64(const char* path, int flags, ...);
__attribute__((alias("openat"))) int openat64(int folder, const char* path, int flags, ...);

FILE* fopen(const char* path, const char* mode) {
  static const auto next = next_definition(&fopen, "fopen");
  return fails("open", path) ? nullptr : next(path, mode);
}

FILE* fopen64(const char* path, const char* mode) { return fopen(path, mode); }

// --- read ---------------------------------------------------------------------------------------

ssize_t read(int descriptor, void* data, size_t size) {
  const Transfer part = transfer("read", descriptor);
  if (part == Transfer::kNone) return -1;
  return syscall(SYS_read, descriptor, data, bytes_of(part, size));
}

ssize_t pread(int descriptor, void* data, size_t size, off_t offset) {
  const Transfer part = transfer("read", descriptor);
  if (part == Transfer::kNone) return -1;
  return syscall(SYS_pread64, descriptor, data, bytes_of(part, size), offset);
}

ssize_t pread64(int descriptor, void* data, size_t size, off64_t offset) {
  return pread(descriptor, data, size, offset);
}

// --- write --------------------------------------------------------------------------------------

ssize_t write(int descriptor, const void* data, size_t size) {
  const Transfer part = transfer("write", descriptor);
  if (part == Transfer::kNone) return -1;
  return syscall(SYS_write, descriptor, data, bytes_of(part, size));
}

ssize_t pwrite(int descriptor, const void* data, size_t size, off_t offset) {
  const Transfer part = transfer("write", descriptor);
  if (part == Transfer::kNone) return -1;
  return syscall(SYS_pwrite64, descriptor, data, bytes_of(part, size), offset);
}

ssize_t pwrite64(int descriptor, const void* data, size_t size, off64_t offset) {
  return pwrite(descriptor, data, size, offset);
}

ssize_t writev(int descriptor, const iovec* parts, int count) {
  const Transfer part = transfer("write", descriptor);
  if (part == Transfer::kNone) return -1;
  return syscall(SYS_writev, descriptor, parts, bytes_of(part, static_cast<size_t>(count)));
}

// --- sync ---------------------------------------------------------------------------------------

int fsync(int descriptor) { return sync_file(SYS_fsync, descriptor); }
int fdatasync(int descriptor) { return sync_file(SYS_fdatasync, descriptor); }

// --- thread -------------------------------------------------------------------------------------

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                   void* argument) noexcept {
  static const auto next = next_definition(&pthread_create, "pthread_create");
  return fails("thread") ? fault_errno() : next(thread, attributes, run, argument);
}

}  // extern "C"
