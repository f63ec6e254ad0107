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
constexpr size_t kMostBarWidth = 24;
constexpr size_t kLeastBarWidth = 8;

// What stands between label and detail.
std::string state(double fraction, size_t bar_width) {
  if (!std::isfinite(fraction)) return ": ";
  const double shown = std::clamp(fraction, 0.0, 1.0);
  const std::string percent = std::to_string(static_cast<int>(shown * 100)) + "%";
  if (bar_width == 0) return ": " + percent + ", ";
  const auto filled = static_cast<size_t>(shown * static_cast<double>(bar_width));
  return " [" + std::string(filled, '#') + std::string(bar_width - filled, '-') + "] " + percent +
         " ";
}

}  // namespace

std::string progress_text(const std::string& label, double fraction, const std::string& detail) {
  return label + state(fraction, 0) + detail;
}

std::string progress_line(const std::string& label, double fraction, std::string detail,
                          size_t width) {
  for (;;) {
    std::string line;
    for (const size_t bar_width : {kMostBarWidth, kLeastBarWidth}) {
      line = label + state(fraction, bar_width) + detail;
      if (line.size() <= width) return line;
    }
    const size_t last_field = detail.rfind(", ");
    if (last_field == std::string::npos) return line.substr(0, width);
    detail.erase(last_field);
  }
}

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
    // A line that wraps could not be wiped.
    const auto width = static_cast<size_t>(std::max(terminal_width(STDERR_FILENO) - 1, 1));
    console_.write("\r" + progress_line(label_, fraction, detail, width) + "\x1b[K");
    is_drawn_ = true;
    next_draw_ = now + kRedraw;
  } else {
    console_.say(progress_text(label_, fraction, detail));
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

}  // namespace tessera
