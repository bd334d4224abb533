// Reads a file below tests/fixtures.
#pragma once

#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
#include <string>

namespace benchsand {

inline std::string fixture(const std::string& name) {
  std::ifstream file(BENCHSAND_SOURCE_DIR "/tests/fixtures/" + name, std::ios::binary);
  REQUIRE_MESSAGE(file.good(), "no fixture " << name);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// The door of every kernel and delegate that was captured.
inline const char* const kDoors[] = {"cgroup/hybrid-6.18/crun/", "cgroup/hybrid-6.18/runc/", "cgroup/v2-6.1/crun/",
                                     "cgroup/v2-6.1/runc/"};
inline const char* const kHybridDoors[] = {"cgroup/hybrid-6.18/crun/", "cgroup/hybrid-6.18/runc/"};
inline const char* const kUnifiedDoors[] = {"cgroup/v2-6.1/crun/", "cgroup/v2-6.1/runc/"};

}  // namespace benchsand
