#include <stdexcept>
#include <string>
extern "C" const char* help() {
  static std::string text;
  try {
    throw std::runtime_error("helped");
  } catch (const std::exception& error) {
    text = error.what();
  }
  return text.c_str();
}
