// Real runs from inside a test: a task in a temporary folder, a host, and a report.
#pragma once

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "shim/run.h"

namespace benchsand::support {

class TempFolder {
 public:
  TempFolder() {
    std::string name = "/tmp/benchsand-test-XXXXXX";
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~TempFolder() { std::filesystem::remove_all(path_); }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  std::string path(const std::string& name = "") const { return name.empty() ? path_ : path_ + "/" + name; }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text;
    return path(name);
  }

 private:
  std::string path_;
};

inline std::string cache() {
  const char* given = std::getenv("BENCHSAND_CACHE");
  return given ? given : "/var/cache/benchsand";
}

// The guest's kernel cannot hand back a filter; there the runner names profiles that say so.
inline std::string profile() {
  const char* given = std::getenv("BENCHSAND_TEST_PROFILE");
  return given ? given : "strict";
}

inline std::string task_text(const std::string& command, const std::string& more = "") {
  return "benchsand: 1\nname: test\nrootfs: " + cache() + "/tiny-rootfs\ncommand: " + command + "\n" + more;
}

inline Policy policy_of(const TempFolder& folder, const std::string& text) {
  auto policy = load_policy({folder.write("task.yaml", text), profile(), {}}, host_facts(CgroupLayout::v2, {}));
  if (!policy) FAIL(policy.error().message);
  return *policy;
}

inline Host host_of(const std::string& engine) {
  auto host = require_host(engine);
  if (!host) FAIL(host.error().message);
  return std::move(*host);
}

inline std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

}  // namespace benchsand::support
