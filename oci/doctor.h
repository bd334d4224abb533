// What `benchsand doctor` found out about a host: as a document, and as a table made from it (docs/doctor.md).
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "oci/record.h"

namespace benchsand {

// A problem and what to do about it. Messages of this house say both, with a semicolon between.
struct Finding {
  std::string why, cure;
};
Finding finding_of(const std::string& message, const std::string& usual_cure);

// One thing of the kernel or the host that walls are made of, tried by itself.
struct DoctorPart {
  std::string name;
  std::string means;               // by which file or call it was tried
  std::vector<std::string> walls;  // what cannot be enforced or observed without it
  bool needed = true;              // by the policy that was tried; a profile can ask for more
  bool tried = true;               // false: something else was missing first
  std::optional<Finding> problem;
};

struct DoctorRun {
  DelegateFacts delegate;
  std::string path;
  std::vector<Finding> problems;  // why it could not be run at all
  bool follows = false;           // and these only follow from a part that is missing
  nlohmann::json record;          // of a task under `strict`; null when it could not be run
  nlohmann::json loosened;  // the same with `filter_proof: compiled`, where strict did not do for lack of a filter dump
};

// What an engine says of itself: hearsay, for nothing of it was tried.
inline constexpr const char* kNoSocket = "no socket is there";  // where nobody says that there is one

struct DoctorEngine {
  std::string name;
  std::string client;  // path; empty: none
  std::string socket;  // path; empty: none
  bool reachable = false;
  std::string version, default_runtime, cgroup_driver, why;
};

struct DoctorFindings {
  std::string kernel, cgroup;
  std::uint64_t processors = 0;
  bool root = false, systemd = false, swap = false, psi = false;
  std::vector<DoctorPart> parts;
  std::vector<DoctorRun> runs;
  std::vector<DoctorEngine> engines;
};

// A delegate ran the task and every wall held.
bool doctor_able(const DoctorFindings& findings);
nlohmann::json doctor_json(const DoctorFindings& findings);
std::string doctor_table(const nlohmann::json& document, bool colour);

}  // namespace benchsand
