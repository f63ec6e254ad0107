#include "tests/fuzz/fuzz_target.h"

#include "kernels/tensor/check.h"
#include "tests/fuzz/oracle.h"

namespace tessera {

std::vector<FuzzTarget> fuzz_targets() {
  return {safetensors_header_target(), safetensors_file_target(),
          sharded_index_target(),      config_target(),
          generation_config_target(),  tokenizer_config_target(),
          tokenizer_model_target(),    tokenizer_json_target(),
          tekken_json_target(),        batch_line_target(),
          conversation_target(),       kv_file_target()};
}

void run(const FuzzTarget& target, std::string_view bytes) {
  try {
    target.read(bytes);
  } catch (const Error& error) {
    require_readable(error.what());
    require_readable(error.hint());
  }
}

}  // namespace tessera
