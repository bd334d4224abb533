// Colour on a terminal.
#pragma once

#include <string>

namespace benchsand {

class Ink {
 public:
  explicit Ink(bool colour) : colour_(colour) {}
  std::string good(const std::string& text) const { return paint("32", text); }
  std::string bad(const std::string& text) const { return paint("31", text); }

 private:
  std::string paint(const char* code, const std::string& text) const {
    return colour_ ? std::string("\033[") + code + "m" + text + "\033[0m" : text;
  }
  bool colour_;
};

}  // namespace benchsand
