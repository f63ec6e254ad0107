// --kv: a conversation's beginning whose keys and values are read instead of computed.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "apps/files/conversation.h"
#include "apps/terminal/console.h"
#include "engine/engine.h"

namespace tessera {

struct KvInput {
  KvFile file;
  Conversation opening;  // of which the file's tokens were made
};

// Opens the file and finds what can be wrong with it before a model is loaded. Throws Error with
// the numbers: damaged, of another model, or not a conversation that a question can follow.
KvInput open_kv(const std::string& path, const EngineOptions& options);

// The same for --kv; nothing when it was not given.
std::optional<KvInput> open_kv_option(const std::string& path, const EngineOptions& options);

// Gives the engine the file's keys and values, with progress. Throws Interrupted.
void load_kv(Engine& engine, const KvFile& file, const Console& console);

// Says so where a prompt that is to begin with the file's tokens does not, because another
// template, or another value of its variables, made it: it is computed from there on.
void compare_with_kv(std::span<const TokenId> prompt, const KvFile& file, const Engine& engine,
                     const Console& console);

}  // namespace tessera
