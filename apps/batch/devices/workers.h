// The processes that answer a batch together.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "apps/batch/counts.h"
#include "apps/batch/devices/child_process.h"
#include "apps/batch/devices/shard_output.h"
#include "apps/batch/options.h"
#include "apps/terminal/console.h"

namespace tessera {

class Workers {
 public:
  // Nothing runs yet; looks at what earlier runs of these shards have answered.
  Workers(const BatchOptions& options, const Console& console);

  // Starts a process for each device. Throws Error.
  void start();
  // Waits a little, passes on what the processes say, and returns whether any still runs.
  bool watch();
  void forward(int signal) const;

  // Whether every process has done all that it was to do.
  bool are_done() const;
  // Devices whose process ended otherwise, and its exit code, but for those that were interrupted:
  // "cuda:2 (exit code 1)".
  std::vector<std::string> failed_devices() const;

  // The sum of all shards so far. `total` is the number of requests.
  BatchCounts counts(int64_t total);
  // Of all answers, also earlier ones.
  OutputTotals totals();
  // The statistics that each process has written, by device.
  nlohmann::ordered_json statistics() const;

 private:
  struct Worker {
    std::string device;
    Shard shard;
    ShardOutput output;
    OutputTotals before;  // answered by earlier runs
    std::unique_ptr<ChildProcess> process;
  };

  std::vector<std::string> arguments_of(const Worker& worker) const;
  void tell(const Worker& worker, const std::string& line) const;

  const BatchOptions& options_;
  const Console& console_;
  std::vector<Worker> workers_;
};

}  // namespace tessera
