// Keys and values of a conversation, kept beside its text: FILE.kv beside FILE.
//
// Two files, for FILE stays what people and other programs read, write and send, a few kilobytes;
// FILE.kv is large, belongs to one model, and can be deleted: it is only ever computed anew.
#pragma once

#include <string>

#include "apps/chat/session.h"

namespace tessera {

// Writes what is computed of the session's conversation, and says how much that is. Where that is
// less than a page, a file of another conversation is removed. Throws Error when writing fails or
// the file that is there has something else in it, Interrupted.
void save_kv_beside(ChatSession& session, const std::string& path);

// Reads it, if it is there, for the conversation that was loaded from `path`. Where it is damaged,
// of another model or another conversation, says so and goes on. Throws Interrupted.
void load_kv_beside(ChatSession& session, const std::string& path);

}  // namespace tessera
