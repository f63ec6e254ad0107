// uses_tessera MODEL PROMPT: prints the eight likeliest tokens that follow PROMPT.
#include <spdlog/spdlog.h>

#include <exception>
#include <iostream>

#include "engine/engine.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  spdlog::set_level(spdlog::level::warn);  // the engine's log goes to standard output by itself
  try {
    const auto engine = tessera::Engine::load(
        {.model = argv[1], .device = tessera::DeviceChoice::kCpu, .context_size = 128});
    const auto sequence = engine->create_sequence();
    const auto prompt = engine->encode_text(argv[2]);
    const auto result = engine->generate(*sequence, prompt, {.temperature = 0.0, .max_tokens = 8});
    std::cout << result.text << '\n';
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
