#include "apps/line_editor/keys.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "engine/text/utf8.h"

namespace tessera {
namespace {

using Event = InputBytes::Event;

constexpr char kEscape = '\x1b';
constexpr std::string_view kPasteEnd = "\x1b[201~";
constexpr size_t kMaxSequenceBytes = 32;
// An Escape that is alone for so long was the Escape key, not the beginning of another key.
constexpr int kEscapeMilliseconds = 50;

struct Binding {
  std::string_view bytes;  // what the terminal sends
  Key key;
};

// As in Emacs, and as the shells do.
constexpr std::array kControls = {
    Binding{"\r", Key::kEnter},
    Binding{"\n", Key::kEnter},
    Binding{"\t", Key::kTab},
    Binding{"\x01", Key::kLineStart},
    Binding{"\x02", Key::kLeft},
    Binding{"\x04", Key::kDeleteRightOrEnd},
    Binding{"\x05", Key::kLineEnd},
    Binding{"\x06", Key::kRight},
    Binding{"\x08", Key::kDeleteLeft},
    Binding{"\x0b", Key::kDeleteToLineEnd},
    Binding{"\x0c", Key::kClearScreen},
    Binding{"\x0e", Key::kDown},
    Binding{"\x10", Key::kUp},
    Binding{"\x15", Key::kDeleteToLineStart},
    Binding{"\x17", Key::kDeleteWordLeft},
    Binding{"\x19", Key::kYank},
    Binding{"\x7f", Key::kDeleteLeft},
};

// What follows an Escape: ECMA-48's control sequences as xterm, rxvt and the Linux console use
// them, and keys pressed with Alt.
constexpr std::array kSequences = {
    Binding{"[200~", Key::kPaste},
    Binding{"[A", Key::kUp},
    Binding{"[B", Key::kDown},
    Binding{"[C", Key::kRight},
    Binding{"[D", Key::kLeft},
    Binding{"[H", Key::kLineStart},
    Binding{"[F", Key::kLineEnd},
    Binding{"OA", Key::kUp},
    Binding{"OB", Key::kDown},
    Binding{"OC", Key::kRight},
    Binding{"OD", Key::kLeft},
    Binding{"OH", Key::kLineStart},
    Binding{"OF", Key::kLineEnd},
    Binding{"[1~", Key::kLineStart},
    Binding{"[7~", Key::kLineStart},
    Binding{"[4~", Key::kLineEnd},
    Binding{"[8~", Key::kLineEnd},
    Binding{"[3~", Key::kDeleteRight},
    Binding{"[1;5C", Key::kWordRight},
    Binding{"[1;5D", Key::kWordLeft},
    Binding{"[1;3C", Key::kWordRight},
    Binding{"[1;3D", Key::kWordLeft},
    Binding{"b", Key::kWordLeft},
    Binding{"f", Key::kWordRight},
    Binding{"d", Key::kDeleteWordRight},
    Binding{"\x7f", Key::kDeleteWordLeft},
    Binding{"\x08", Key::kDeleteWordLeft},
    Binding{"\r", Key::kNewline},
    Binding{"\n", Key::kNewline},
};

template <size_t kSize>
Key find_key(const std::array<Binding, kSize>& bindings, std::string_view bytes) {
  const auto* found = std::find_if(bindings.begin(), bindings.end(),
                                   [bytes](const Binding& entry) { return entry.bytes == bytes; });
  return found == bindings.end() ? Key::kUnknown : found->key;
}

// The bytes after an Escape: one, or a whole control sequence ("[" or "O", numbers, a letter).
std::string read_sequence(InputBytes& bytes) {
  std::string sequence;
  char byte = 0;
  while (sequence.size() < kMaxSequenceBytes &&
         bytes.next(byte, kEscapeMilliseconds) == Event::kByte) {
    if (byte == kEscape) {
      // Of the next key: rxvt and others send one more before Alt and an arrow.
      bytes.put_back();
      break;
    }
    sequence += byte;
    const bool is_longer = sequence[0] == '[' || sequence[0] == 'O';
    const bool is_final = sequence.size() > 1 && byte >= '@' && byte <= '~';
    if (!is_longer || is_final) break;
  }
  return sequence;
}

// Pasted text as a message can hold it: lines end with \n, and no control characters but that and
// tabs, for what is copied from a terminal or an untrusted page may contain them unseen.
std::string clean_paste(std::string_view pasted) {
  std::string text;
  for (size_t at = 0; at < pasted.size(); ++at) {
    const char byte = pasted[at];
    const bool is_control = static_cast<unsigned char>(byte) < 0x20 || byte == '\x7f';
    if (byte == '\r') {
      text += '\n';
      if (at + 1 < pasted.size() && pasted[at + 1] == '\n') ++at;
    } else if (!is_control || byte == '\n' || byte == '\t') {
      text += byte;
    }
  }
  return replace_invalid_utf8(text);
}

KeyPress no_key(Event event) {
  if (event == Event::kEnd) return {Key::kEndOfInput, ""};
  return {event == Event::kSignal ? Key::kSignal : Key::kTerminalChange, ""};
}

KeyPress read_paste(InputBytes& bytes) {
  std::string pasted;
  char byte = 0;
  while (!pasted.ends_with(kPasteEnd)) {
    const Event event = bytes.next(byte);
    if (event != Event::kByte) return no_key(event);
    pasted += byte;
  }
  pasted.resize(pasted.size() - kPasteEnd.size());
  return {Key::kPaste, clean_paste(pasted)};
}

// A character beyond ASCII that begins with `lead`. Bytes that are not UTF-8 are no key.
KeyPress read_character(InputBytes& bytes, char lead) {
  std::string text(1, lead);
  char byte = 0;
  while (text.size() < utf8_character_bytes(lead) && bytes.next(byte) == Event::kByte) {
    if (!is_utf8_continuation(byte)) {
      bytes.put_back();
      break;
    }
    text += byte;
  }
  if (find_invalid_utf8(text)) return {};
  return {Key::kText, std::move(text)};
}

KeyPress read_escape(InputBytes& bytes) {
  const Key key = find_key(kSequences, read_sequence(bytes));
  return key == Key::kPaste ? read_paste(bytes) : KeyPress{key, ""};
}

}  // namespace

KeyPress read_key(InputBytes& bytes) {
  char byte = 0;
  const Event event = bytes.next_or_change(byte);
  if (event != Event::kByte) return no_key(event);
  if (byte == kEscape) return read_escape(bytes);
  const auto character = static_cast<unsigned char>(byte);
  if (character >= 0x80) return read_character(bytes, byte);
  if (character >= 0x20 && character != 0x7f) return {Key::kText, std::string(1, byte)};
  return {find_key(kControls, std::string_view(&byte, 1)), ""};
}

}  // namespace tessera
