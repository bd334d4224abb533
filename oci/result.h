// Errors are values that must be looked at. A message says what was tried, on what, and why it failed, without a full stop.
#pragma once

#include <expected>
#include <string>
#include <utility>

namespace benchsand {

struct Error {
  // `usage`: the caller's input is wrong (exit 2). `fault`: this host or benchsand itself could not do it (exit 3).
  enum class Kind { fault, usage };
  Kind kind = Kind::fault;
  std::string message;
  int error_number = 0;  // errno of a failed call, 0 otherwise
};

// std::expected is not [[nodiscard]] in libstdc++ 12; a dropped error would be a run scored without evidence.
template <class T>
struct [[nodiscard]] Result : std::expected<T, Error> {
  using std::expected<T, Error>::expected;
  const std::string& message() const { return this->error().message; }
};

inline std::unexpected<Error> fault(std::string message) {
  return std::unexpected(Error{Error::Kind::fault, std::move(message)});
}
inline std::unexpected<Error> usage(std::string message) {
  return std::unexpected(Error{Error::Kind::usage, std::move(message)});
}

}  // namespace benchsand

// The value of a Result, or an early return of its error. A statement expression, because C++23 has no operator for it;
// numbered, so that one may stand inside another.
#define BENCHSAND_JOIN_(a, b) a##b
#define BENCHSAND_JOIN(a, b) BENCHSAND_JOIN_(a, b)
#define BENCHSAND_TRY(result, expression)                           \
  __extension__({                                                   \
    auto result = (expression);                                     \
    if (!result) return std::unexpected(std::move(result.error())); \
    std::move(*result);                                             \
  })
#define BENCHSAND_TRY_VOID(result, expression)                      \
  do {                                                              \
    auto result = (expression);                                     \
    if (!result) return std::unexpected(std::move(result.error())); \
  } while (false)
#define TRY(expression) BENCHSAND_TRY(BENCHSAND_JOIN(try_result_, __COUNTER__), expression)
#define TRY_VOID(expression) BENCHSAND_TRY_VOID(BENCHSAND_JOIN(try_result_, __COUNTER__), expression)
