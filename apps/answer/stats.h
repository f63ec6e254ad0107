// What an answer cost, as a line for people and as JSON for programs.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "apps/answer/overflow.h"
#include "apps/files/late_replacement.h"
#include "engine/engine.h"

namespace tessera {

// Bytes that a decode step must read: all weights, and the KV cache of every sequence.
uint64_t decode_step_bytes(const Engine& engine, int64_t num_sequences, int64_t context_length);

// prompt 1234 tok 812.3 tok/s | gen 256 tok 95.1 tok/s 1528.1 GB/s | ttft 0.21 s | kv 1490/16384 |
// seed 42. Of a prompt that was partly there, the rate is of the rest: prompt 3881 tok (3840
// cached, 41 computed at 330.1 tok/s). GB/s is what decoding read; `bench` says how much the memory
// allows. An answer of one token has no rates. After a stop while the prompt was read: prompt 512
// of 1234 tok, ttft -.
std::string stats_line(const Engine& engine, const GenerationResult& result,
                       const SamplingParams& params);

// " | seed 42" for answers that were drawn with one, else "".
std::string seed_text(const SamplingParams& params);

// Times in seconds, sizes in bytes, rates in tokens per second. Decode rates leave the first token
// out: (n - 1) / (time of the last token - time of the first).
nlohmann::ordered_json stats_json(const Engine& engine, const EngineOptions& options,
                                  const GenerationResult& result, const SamplingParams& params);

// The tokens that a prompt lost, a list of "begin" and "tokens".
nlohmann::ordered_json left_out_json(const LeftOut& left_out);

// The engine's part of stats_json: model, device, memory, load times.
nlohmann::ordered_json engine_json(const Engine& engine, const EngineOptions& options);

// Most memory this process has had resident, in bytes.
uint64_t peak_resident_bytes();

// Where --stats-json goes: one object a line.
class StatsFile {
 public:
  // Looks at `path` now, so that a mistake in it costs no model load; what the file holds stays
  // until the first object is written. "-" is standard output, "" is nowhere. Throws Error.
  explicit StatsFile(const std::string& path);

  void write(const nlohmann::ordered_json& object) const;

 private:
  std::unique_ptr<LateReplacement> file_;  // nullptr: nowhere
};

}  // namespace tessera
