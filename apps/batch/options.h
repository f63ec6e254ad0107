// What the command line of a batch asks for.
#pragma once

#include <string>
#include <vector>

#include "apps/batch/shard.h"
#include "apps/options/common_options.h"
#include "apps/options/overflow_option.h"
#include "apps/options/sampling_options.h"
#include "engine/options.h"

namespace tessera {

struct BatchOptions {
  EngineOptions engine;
  SamplingOptions sampling;
  PromptOptions prompt;
  OnOverflow on_overflow = OnOverflow::kError;
  std::string input_path;   // "-": standard input
  std::string output_path;  // "-": standard output
  Shard shard;
  std::vector<std::string> devices;  // a process for each; empty: this one computes
  bool resume = false;
  bool overwrite = false;
  bool force = false;
  bool strict = false;
  std::string kv_path;  // of --kv; "" for none
  std::string stats_path;
  std::vector<std::string> arguments;  // the command line itself, program first
};

// Throws UsageError when a file that a batch writes or removes is another that it reads or writes:
// the answers would replace the requests, or the statistics the answers.
void require_separate_files(const BatchOptions& options);

// The command line that does the rest of a batch that was stopped, quoted for a shell.
std::string resume_command(const BatchOptions& options);

}  // namespace tessera
