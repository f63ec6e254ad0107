#include "tests/harness/faults/fault_point.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

// System calls are made by number here: the functions of that name are those that fail.
namespace {

// Constant-initialised: functions here are called before any constructor has run.
std::atomic<uint64_t>* g_count = nullptr;
std::string_view g_call;
std::string_view g_folder;
uint64_t g_at = 0;
int g_errno = 0;
bool g_onward = false;

std::string_view setting(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

__attribute__((constructor)) void set_up() {
  g_folder = setting("FAULT_FOLDER");
  g_at = std::strtoull(setting("FAULT_AT").data(), nullptr, 10);
  g_errno = std::atoi(setting("FAULT_ERRNO").data());
  g_onward = setting("FAULT_ONWARD") == "1";
  const auto file = static_cast<int>(
      syscall(SYS_openat, AT_FDCWD, setting("FAULT_COUNT").data(), O_RDWR | O_CLOEXEC));
  void* memory = reinterpret_cast<void*>(
      syscall(SYS_mmap, nullptr, sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
  if (memory == MAP_FAILED) std::abort();
  close(file);
  g_count = static_cast<std::atomic<uint64_t>*>(memory);
  g_call = setting("FAULT_CALL");
}

bool is_concerned(const char* path) {
  if (g_folder.empty()) return true;
  char working_folder[PATH_MAX] = {};
  if (*path != '/') {
    syscall(SYS_getcwd, working_folder, sizeof(working_folder));
    path = working_folder;
  }
  return std::string_view(path).starts_with(g_folder);
}

bool is_concerned(int descriptor) {
  if (g_folder.empty()) return true;
  char link[32];
  char path[PATH_MAX + 1] = {};
  std::snprintf(link, sizeof(link), "/proc/self/fd/%d", descriptor);
  return syscall(SYS_readlink, link, path, PATH_MAX) > 0 && is_concerned(path);
}

}  // namespace

bool fails(std::string_view call) {
  if (call != g_call) return false;
  const uint64_t number = g_count->fetch_add(1) + 1;
  if (g_at == 0 || (g_onward ? number < g_at : number != g_at)) return false;
  if (g_errno != 0) errno = g_errno;
  return true;
}

bool fails(std::string_view call, const char* path) {
  return call == g_call && is_concerned(path) && fails(call);
}

Transfer transfer(std::string_view call, int descriptor) {
  if (call != g_call || !is_concerned(descriptor) || !fails(call)) return Transfer::kAll;
  return g_errno == 0 ? Transfer::kHalf : Transfer::kNone;
}

size_t bytes_of(Transfer transfer, size_t bytes) {
  return transfer == Transfer::kHalf ? (bytes + 1) / 2 : bytes;
}

int fault_errno() { return g_errno; }
