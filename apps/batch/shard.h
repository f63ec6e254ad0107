// A part of a batch's requests, for one of several processes.
#pragma once

#include <cstdint>
#include <string>

namespace tessera {

// Every count-th request, from the index-th on. Indices begin at 0, as in Slurm's arrays and in
// JOB_COMPLETION_INDEX of Kubernetes.
struct Shard {
  int64_t index = 0;
  int64_t count = 1;

  bool is_whole() const { return count == 1; }
  bool contains(int64_t request) const { return request % count == index; }
  // "2/8"
  std::string text() const;
};

// Throws UsageError that names --shard for anything but "I/N" with 0 <= I < N.
Shard parse_shard(const std::string& text);

}  // namespace tessera
