// This program, run again in a process of its own, and what that process says.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "engine/input_files.h"

namespace tessera {

class ChildProcess {
 public:
  // `arguments` follow the program's name; "--stats-json" and where it goes are added to them. The
  // child is in a process group of its own, so that Ctrl-C reaches it through forward() alone, and
  // gets SIGTERM when this process dies. Throws Error when the system has no process for it.
  explicit ChildProcess(const std::vector<std::string>& arguments);
  // Kills it if it still runs.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Sends it a signal, unless it has ended.
  void forward(int signal) const;

  // Waits up to `milliseconds` for any of them to say something or to end.
  static void wait_for_any(const std::vector<ChildProcess*>& children, int milliseconds);

  // The whole lines that it has written to standard error since the last call; at the end also one
  // without a line break.
  std::vector<std::string> take_lines();

  // Its exit code once it has ended, 128 + N when signal N killed it.
  std::optional<int> exit_code();
  // What it wrote as its statistics by then; "" for nothing.
  const std::string& statistics() const { return statistics_; }

 private:
  // Adds what can be read now.
  void read_all();

  pid_t process_ = -1;
  FileDescriptor messages_{-1};      // the reading end of its standard error
  FileDescriptor measurements_{-1};  // the same of its statistics
  std::string unread_;               // of its standard error
  std::string statistics_;
  std::optional<int> exit_code_;
};

// Kills every child at once; may be called from a signal handler.
void kill_children();

}  // namespace tessera
