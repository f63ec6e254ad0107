// What the command line of tessera summarize asks for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/files/text_input.h"
#include "apps/options/overflow_option.h"
#include "apps/options/sampling_options.h"
#include "apps/options/template_options.h"
#include "apps/summarize/instruction.h"
#include "engine/options.h"

namespace tessera {

// What --chunk-tokens and --words may be, and --overlap.
inline constexpr NumberLimits<int64_t> kChunkTokensLimits = {64, int64_t{1} << 30};
inline constexpr NumberLimits<int64_t> kWordsLimits = {1, 1'000'000};
inline constexpr NumberLimits<int64_t> kOverlapLimits = {0, int64_t{1} << 30};

struct SummarizeOptions {
  EngineOptions engine;
  SamplingOptions sampling;
  ThinkingOptions thinking;
  InvalidUtf8 invalid_utf8 = InvalidUtf8::kRefuse;
  std::vector<std::string> files;  // "-": standard input
  std::string kv_path;             // of --kv instead of files; "" for none
  bool each = false;               // a summary of each file instead of one of all
  Instruction instruction;
  OnOverflow on_overflow = OnOverflow::kChunk;
  bool chunk = false;
  int64_t chunk_tokens = 0;        // 0: what is usual
  std::optional<int64_t> overlap;  // tokens
  std::string output_path;         // "" or "-": standard output
  bool json = false;
  std::string stats_path;

  bool has_output_file() const { return !output_path.empty() && output_path != "-"; }
  // The summary can be shown while it comes.
  bool streams() const { return !has_output_file() && !json; }
};

}  // namespace tessera
