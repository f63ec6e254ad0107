#include "apps/batch/devices/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "apps/process/exit_codes.h"
#include "engine/engine.h"

namespace tessera {
namespace {

constexpr const char* kThisProgram = "/proc/self/exe";
// More GPUs than a host has.
constexpr size_t kMaxChildren = 1024;

// For the signal handler: process ids, 0 where there is none.
std::array<std::atomic<pid_t>, kMaxChildren> g_children;

void remember(pid_t process) {
  for (std::atomic<pid_t>& child : g_children) {
    pid_t none = 0;
    if (child.compare_exchange_strong(none, process)) return;
  }
}

void forget(pid_t process) {
  for (std::atomic<pid_t>& child : g_children) {
    pid_t expected = process;
    if (child.compare_exchange_strong(expected, 0)) return;
  }
}

struct Pipe {
  FileDescriptor reader{-1};
  FileDescriptor writer{-1};
};

Pipe make_pipe() {
  std::array<int, 2> ends = {-1, -1};
  CHECK(pipe2(ends.data(), O_CLOEXEC) == 0, "no pipe: ", std::strerror(errno));
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

// In the child, between fork and exec: nothing here may allocate.
[[noreturn]] void become(char* const* arguments, pid_t parent, int messages, int measurements) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(exit_code_of(SIGTERM));  // it died before
  dup2(messages, STDERR_FILENO);
  fcntl(measurements, F_SETFD, 0);
  execv(kThisProgram, arguments);
  _exit(127);
}

// Appends what can be read without waiting.
void read_available(const FileDescriptor& pipe, std::string& text) {
  std::array<char, 1 << 14> block;
  for (;;) {
    const ssize_t count = read(pipe.value(), block.data(), block.size());
    if (count > 0) {
      text.append(block.data(), static_cast<size_t>(count));
    } else if (count == 0 || errno != EINTR) {
      return;
    }
  }
}

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& arguments) {
  Pipe messages = make_pipe();
  Pipe measurements = make_pipe();
  std::vector<std::string> all = {"tessera"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  all.insert(all.end(), {"--stats-json", concat("/dev/fd/", measurements.writer.value())});
  std::vector<char*> pointers;
  for (std::string& argument : all) pointers.push_back(argument.data());
  pointers.push_back(nullptr);

  const pid_t parent = getpid();
  process_ = fork();
  CHECK(process_ >= 0, "no process for a device: ", std::strerror(errno));
  if (process_ == 0) {
    become(pointers.data(), parent, messages.writer.value(), measurements.writer.value());
  }
  remember(process_);
  messages_ = std::move(messages.reader);
  measurements_ = std::move(measurements.reader);
}

ChildProcess::~ChildProcess() {
  if (exit_code_) return;
  kill(process_, SIGKILL);
  waitpid(process_, nullptr, 0);
  forget(process_);
}

void ChildProcess::forward(int signal) const {
  if (!exit_code_) kill(process_, signal);
}

void ChildProcess::wait_for_any(const std::vector<ChildProcess*>& children, int milliseconds) {
  std::vector<pollfd> states;
  for (const ChildProcess* child : children) {
    if (!child->exit_code_) states.push_back({child->messages_.value(), POLLIN, 0});
  }
  poll(states.data(), states.size(), milliseconds);
}

std::vector<std::string> ChildProcess::take_lines() {
  read_all();
  std::vector<std::string> lines;
  for (size_t end = unread_.find('\n'); end != std::string::npos; end = unread_.find('\n')) {
    lines.push_back(unread_.substr(0, end));
    unread_.erase(0, end + 1);
  }
  if (exit_code_ && !unread_.empty()) lines.push_back(std::exchange(unread_, ""));
  return lines;
}

std::optional<int> ChildProcess::exit_code() {
  int status = 0;
  if (exit_code_ || waitpid(process_, &status, WNOHANG) != process_) return exit_code_;
  exit_code_ = WIFSIGNALED(status) ? exit_code_of(WTERMSIG(status)) : WEXITSTATUS(status);
  forget(process_);
  read_all();
  return exit_code_;
}

void ChildProcess::read_all() {
  read_available(messages_, unread_);
  read_available(measurements_, statistics_);
}

void kill_children() {
  for (const std::atomic<pid_t>& child : g_children) {
    if (const pid_t process = child; process > 0) kill(process, SIGKILL);
  }
}

}  // namespace tessera
