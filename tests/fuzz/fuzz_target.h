// The readers of untrusted input, each as one function of bytes that both libFuzzer and a plain
// test can call.
#pragma once

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

struct FuzzTarget {
  std::string name;  // of its corpus folder; also --target=NAME
  // Reads `bytes` as this kind of input and checks what comes out. May throw Error, whose message
  // is checked by run(); throws Violation (oracle.h) when what was read cannot be right.
  void (*read)(std::string_view bytes);
  std::vector<std::string> seeds;       // well-formed inputs and hostile ones, to mutate
  std::vector<std::string> dictionary;  // words of the format
  size_t max_bytes = 2048;              // of a mutated input

  friend std::ostream& operator<<(std::ostream& stream, const FuzzTarget& target) {
    return stream << target.name;
  }
};

std::vector<FuzzTarget> fuzz_targets();

// Lets the target read `bytes`. An Error is a legitimate answer if a person can read it; everything
// else that is thrown is a bug and passes through.
void run(const FuzzTarget& target, std::string_view bytes);

// One function per file of this folder.
FuzzTarget safetensors_header_target();
FuzzTarget safetensors_file_target();
FuzzTarget sharded_index_target();
FuzzTarget config_target();
FuzzTarget generation_config_target();
FuzzTarget tokenizer_config_target();
FuzzTarget tokenizer_model_target();
FuzzTarget tokenizer_json_target();
FuzzTarget tekken_json_target();
FuzzTarget batch_line_target();
FuzzTarget conversation_target();
FuzzTarget kv_file_target();

}  // namespace tessera
