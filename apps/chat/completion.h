// What Tab completes in a chat: commands, the keys of /set, and names of files.
#pragma once

#include <string_view>

#include "apps/line_editor/terminal_editor.h"

namespace tessera {

// For a line that begins with "/"; nothing elsewhere.
Completions complete_chat_command(std::string_view before_cursor);

}  // namespace tessera
