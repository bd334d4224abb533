// Bytes that a candidate may have chosen, for a reader: what would not be seen, or would make the rest look otherwise, is found here.
#pragma once

#include <cstddef>
#include <string>

namespace benchsand {

// Length of the valid UTF-8 sequence at `at`, 0 when there is none.
std::size_t utf8_length(const std::string& text, std::size_t at);

// Length of the sequence at `at` when it is a control character, invisible, or turns the direction of writing; otherwise 0.
std::size_t hidden_length(const std::string& text, std::size_t at);

// `length` bytes from `at` on as \xNN.
std::string escaped_bytes(const std::string& text, std::size_t at, std::size_t length);

}  // namespace benchsand
