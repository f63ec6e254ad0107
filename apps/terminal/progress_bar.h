// How far a long piece of work has come, on standard error.
//
// On a terminal one line that is redrawn at most ten times a second and wiped at the end; elsewhere
// one line at most every five seconds. Short work shows nothing.
#pragma once

#include <chrono>
#include <string>

#include "apps/terminal/console.h"

namespace tessera {

// "label: 12%, detail", for a log. fraction: see ProgressBar::update.
std::string progress_text(const std::string& label, double fraction, const std::string& detail);
// "label [###---------] 25% detail", of at most `width` characters. Where they are too few, the bar
// is shorter, and then the last of the detail's fields, which ", " separates, are left out.
std::string progress_line(const std::string& label, double fraction, std::string detail,
                          size_t width);

class ProgressBar {
 public:
  ProgressBar(const Console& console, std::string label);
  ~ProgressBar() { clear(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // Whether update() would show anything now: what is costly to say can wait until then.
  bool is_due() const { return console_.shows_progress() && Clock::now() >= next_draw_; }

  // fraction in [0, 1], or NaN where nobody knows it; `detail` stands behind the bar, e.g.
  // "512/2048 tokens".
  void update(double fraction, const std::string& detail);

  // The same for bytes; total_bytes is 0 where nobody knows it.
  void update_bytes(uint64_t done_bytes, uint64_t total_bytes);

  // Wipes the bar from a terminal. A later update draws it again.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;

  const Console& console_;
  std::string label_;
  Clock::time_point next_draw_;
  bool is_drawn_ = false;
};

}  // namespace tessera
