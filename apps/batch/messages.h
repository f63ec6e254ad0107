// The messages of a batch request, as OpenAI's chat API writes them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/text/message.h"

namespace tessera {

// `path` names the value in messages, e.g. "body.messages". A message has a role, content (text, a
// list of text parts, or null beside tool_calls) and, where they belong to its role, tool_calls,
// tool_call_id, name and reasoning_content. Arguments of tool calls that come as a string become
// the JSON that it spells: what templates expect. Throws Error for everything else.
std::vector<Message> parse_messages(const nlohmann::ordered_json& value, const std::string& path);

// A list of objects as JSON; "" for an empty one or null. Throws Error for anything else.
std::string parse_tools(const nlohmann::ordered_json& value, const std::string& path);

// The text. Throws Error for anything else.
const std::string& string_at(const nlohmann::ordered_json& value, const std::string& path);

// A value as messages quote it; what is long or a container is cut or named.
std::string shown(const nlohmann::ordered_json& value);

}  // namespace tessera
