#include "apps/options/overflow_option.h"

#include <string>

#include "apps/options/number_option.h"
#include "apps/process/exit_codes.h"

namespace tessera {
namespace {

OnOverflow parse_overflow(const std::string& text, bool can_chunk) {
  for (const OnOverflow choice : {OnOverflow::kError, OnOverflow::kChunk, OnOverflow::kMiddle}) {
    if (text != to_string(choice)) continue;
    if (choice != OnOverflow::kChunk || can_chunk) return choice;
    throw UsageError("--on-overflow chunk reads a document in parts, which only summarize does",
                     "tessera summarize FILE");
  }
  throw UsageError(
      refusal("--on-overflow", can_chunk ? "error, chunk or middle" : "error or middle", text));
}

}  // namespace

const char* to_string(OnOverflow choice) {
  switch (choice) {
    case OnOverflow::kError:
      return "error";
    case OnOverflow::kChunk:
      return "chunk";
    case OnOverflow::kMiddle:
      return "middle";
  }
  return "unknown";
}

CLI::Option* add_overflow_option(CLI::App& app, OnOverflow& choice, bool can_chunk) {
  const std::string help =
      can_chunk ? "a document that does not fit: chunk reads it in parts and merges their\n"
                  "summaries, middle leaves out its middle, error refuses it (chunk)"
                : "a prompt that does not fit: error refuses it, middle leaves out its middle and\n"
                  "says so (error)";
  return app
      .add_option_function<std::string>(
          "--on-overflow",
          [&choice, can_chunk](const std::string& text) {
            choice = parse_overflow(text, can_chunk);
          },
          help)
      ->option_text("HOW")
      ->group("Prompt");
}

}  // namespace tessera
