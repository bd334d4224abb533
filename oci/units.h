// Times and sizes as people write them, and back.
#pragma once

#include <cstdint>
#include <string>

#include "oci/limits.h"
#include "oci/result.h"

namespace benchsand {

// A number with an optional unit of the field: us ms s m h; B KiB MiB GiB KB MB GB; counts and cpus take none (cpus may have
// up to three decimals). Plain integers are seconds and bytes. "nan", "inf", "-1", "0" parse as not usable, see AskedBound.
struct Quantity {
  bool usable = false;
  std::uint64_t value = 0;
};
Result<Quantity> parse_quantity(const std::string& text, Unit unit);

// The shortest exact form: 268435456 bytes -> "256MiB", 2000000 us -> "2s", 1500 milli -> "1.5".
std::string format_quantity(std::uint64_t value, Unit unit);

}  // namespace benchsand
