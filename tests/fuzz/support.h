// What the fuzzers share.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "oci/admit.h"

namespace benchsand::fuzz {

inline void must(bool holds) {
  if (!holds) std::abort();
}

inline const std::string& strict_text() {
  static const std::string text = [] {
    std::ifstream file(BENCHSAND_SOURCE_DIR "/profiles/strict.yaml");
    return std::string(std::istreambuf_iterator<char>(file), {});
  }();
  return text;
}

inline const Profile& strict() {
  static const Profile profile = [] {
    auto parsed = parse_profile(strict_text(), "strict.yaml");
    must(parsed.has_value());
    return *parsed;
  }();
  return profile;
}

inline HostFacts host() {
  return {CgroupLayout::v2, "6.1.0", "crun", "1.8.1", 2};
}

inline BundlePlaces places() {
  BundlePlaces where;
  where.rootfs = "/run/own/rootfs";
  where.output = "/run/own/output";
  where.cgroups_path = "/benchsand/r1/ct";
  where.listener = "/run/own/listener";
  where.devices = "/run/own/dev";
  return where;
}

}  // namespace benchsand::fuzz
