#include "apps/terminal/progress_bar.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "apps/terminal/human_units.h"

namespace tessera {
namespace {

using namespace std::chrono_literals;

constexpr auto kFirstDraw = 300ms;
constexpr auto kRedraw = 100ms;
constexpr auto kLogInterval = 5s;
constexpr int kBarWidth = 24;

}  // namespace

ProgressBar::ProgressBar(const Console& console, std::string label)
    : console_(console), label_(std::move(label)) {
  next_draw_ = Clock::now();
  if (console_.is_terminal()) {
    next_draw_ += kFirstDraw;
  } else {
    next_draw_ += kLogInterval;
  }
}

void ProgressBar::update(double fraction, const std::string& detail) {
  const bool is_over = fraction >= 1.0 && !is_drawn_;
  if (!is_due() || is_over) return;
  const Clock::time_point now = Clock::now();
  if (console_.is_terminal()) {
    console_.write("\r" + line(fraction, detail) + "\x1b[K");
    is_drawn_ = true;
    next_draw_ = now + kRedraw;
  } else {
    console_.say(line(fraction, detail));
    next_draw_ = now + kLogInterval;
  }
}

void ProgressBar::update_bytes(uint64_t done_bytes, uint64_t total_bytes) {
  if (total_bytes == 0) {
    return update(std::numeric_limits<double>::quiet_NaN(), human_bytes(done_bytes));
  }
  update(static_cast<double>(done_bytes) / static_cast<double>(total_bytes),
         human_bytes(done_bytes) + "/" + human_bytes(total_bytes));
}

void ProgressBar::clear() {
  if (is_drawn_) console_.write("\r\x1b[K");
  is_drawn_ = false;
}

std::string ProgressBar::line(double fraction, const std::string& detail) const {
  const std::string text = label_ + state(fraction) + detail;
  if (!console_.is_terminal()) return text;
  // A line that wraps could not be wiped.
  const int width = terminal_width(STDERR_FILENO);
  return text.substr(0, static_cast<size_t>(std::max(width - 1, 1)));
}

std::string ProgressBar::state(double fraction) const {
  if (!std::isfinite(fraction)) return ": ";
  const double shown = std::clamp(fraction, 0.0, 1.0);
  const std::string percent = std::to_string(static_cast<int>(shown * 100)) + "%";
  if (!console_.is_terminal()) return ": " + percent + ", ";
  const int filled = static_cast<int>(shown * kBarWidth);
  return " [" + std::string(static_cast<size_t>(filled), '#') +
         std::string(static_cast<size_t>(kBarWidth - filled), '-') + "] " + percent + " ";
}

}  // namespace tessera
