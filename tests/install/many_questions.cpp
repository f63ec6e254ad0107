// many_questions MODEL QUESTION...: answers all at once, each printed as soon as it is finished.
#include <spdlog/spdlog.h>

#include <iostream>
#include <vector>

#include "engine/engine.h"

int main(int argc, char** argv) {
  spdlog::set_level(spdlog::level::warn);
  const auto engine = tessera::Engine::load({.model = argv[1], .max_sequences = 0});
  std::vector<tessera::SequencePtr> sequences(argc);  // number i is of argv[i]
  for (int i = 2; i < argc; ++i) {
    const tessera::Message question{tessera::Role::kUser, argv[i]};
    sequences[i] = engine->create_sequence();
    engine->submit(*sequences[i], engine->encode_chat({&question, 1}),
                   {.temperature = 0.0, .max_tokens = 64});
  }
  // A step computes a token of everyone. Between two, submit() adds and cancel() takes away.
  for (bool has_more = true; has_more;) {
    has_more = engine->step();
    for (int i = 2; i < argc; ++i) {
      if (!sequences[i] || !engine->is_finished(*sequences[i])) continue;
      std::cout << argv[i] << '\t' << engine->result(*sequences[i]).text << '\n';
      sequences[i].reset();  // gives the pages of its KV cache back
    }
  }
}
