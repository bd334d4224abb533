#include "oci/signal_name.h"

#include <array>
#include <charconv>
#include <string_view>

namespace benchsand {

namespace {

constexpr int kLast = 64, kFirstRealTime = 34;  // the C library keeps 32 and 33 for itself

// Linux on x86-64, from 1 on.
constexpr std::array<std::string_view, 31> kNames = {
    "HUP",  "INT",  "QUIT", "ILL",    "TRAP",   "ABRT",  "BUS",  "FPE",  "KILL", "USR1", "SEGV",
    "USR2", "PIPE", "ALRM", "TERM",   "STKFLT", "CHLD",  "CONT", "STOP", "TSTP", "TTIN", "TTOU",
    "URG",  "XCPU", "XFSZ", "VTALRM", "PROF",   "WINCH", "IO",   "PWR",  "SYS"};

// Digits and nothing else; 0 for what is none.
int number(std::string_view text) {
  int value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  return failed == std::errc() && end == text.data() + text.size() && text[0] != '-' ? value : 0;
}

int real_time(std::string_view name) {
  if (name == "RTMIN") return kFirstRealTime;
  if (name == "RTMAX") return kLast;
  if (name.starts_with("RTMIN+")) return kFirstRealTime + number(name.substr(6));
  if (name.starts_with("RTMAX-")) return kLast - number(name.substr(6));
  return 0;
}

}  // namespace

Result<int> parse_signal(const std::string& text) {
  std::string upper;
  for (const char c : text) upper += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  std::string_view name = upper;
  if (name.starts_with("SIG")) name.remove_prefix(3);
  int signal = text.empty() ? 0 : number(text);
  for (std::size_t i = 0; i < kNames.size(); ++i)
    if (name == kNames[i]) signal = static_cast<int>(i) + 1;
  if (name == "POLL") signal = 29;
  if (name == "IOT") signal = 6;
  if (name == "CLD") signal = 17;
  if (const int found = real_time(name); found != 0) signal = found;
  if (signal < 1 || signal > kLast)
    return usage("send a signal: '" + text.substr(0, 20) + "' is neither a name of one (TERM, SIGTERM) nor 1 to 64");
  return signal;
}

}  // namespace benchsand
