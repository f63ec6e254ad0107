// The messages a person has sent, to go back to. A message of several lines is one entry.
#pragma once

#include <deque>
#include <optional>
#include <string>

namespace tessera {

class InputHistory {
 public:
  // Entries are read from and added to the file `path`; "" keeps them for this run alone. A file
  // that cannot be read or written is done without, and beyond 1000 entries the oldest go.
  explicit InputHistory(std::string path);

  // Adds an entry, unless it repeats the last one. Very long ones stay out of the file.
  void add(const std::string& text);
  // Adds what was typed so far and will not be sent, for this run alone. `draft` is as below.
  void add_draft(const std::string& draft);

  // The entry before the one last given, the latest at first; nothing when there is none. `draft`
  // is what was typed so far.
  std::optional<std::string> previous(const std::string& draft);
  // The entry after it; after the latest the draft.
  std::optional<std::string> next();
  // From here on previous() begins at the latest again.
  void stop_browsing() { position_ = entries_.size(); }
  bool is_browsing() const { return position_ < entries_.size(); }

 private:
  void load();
  // Whether it is new.
  bool push(const std::string& text);

  std::string path_;
  std::deque<std::string> entries_;
  size_t position_ = 0;  // of the entry last given; entries_.size() for none
  std::string draft_;
};

// $XDG_STATE_HOME/tessera/history or ~/.local/state/tessera/history, its folder made; "" when that
// cannot be.
std::string default_history_path();

}  // namespace tessera
