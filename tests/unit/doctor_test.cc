#include "oci/doctor.h"

#include <doctest/doctest.h>

#include "oci/walls.h"
#include "sample_record.h"

using namespace benchsand;
using nlohmann::json;

namespace {

DoctorRun run_of(const std::string& name, json record) {
  DoctorRun run;
  run.delegate = {name, "1.0", std::string(64, 'a')};
  run.path = "/usr/bin/" + name;
  run.record = std::move(record);
  return run;
}

json broken(const std::string& wall, const std::string& observed) {
  json record = sample::record(nullptr);
  record["id"] = "r0123456789abcdef01234567";
  record["verdict"] = {{"scored", false},
                       {"outcome", "refused"},
                       {"tier", nullptr},
                       {"failures",
                        {{{"wall", wall},
                          {"expected", "0"},
                          {"observed", observed},
                          {"source", "/proc/1234/x of r0123456789abcdef01234567"}}}}};
  return record;
}

DoctorFindings findings_of(std::vector<DoctorRun> runs) {
  DoctorFindings findings;
  findings.kernel = "6.1.0";
  findings.cgroup = "v2";
  findings.root = true;
  findings.runs = std::move(runs);
  return findings;
}

DoctorPart part(const std::string& name, std::vector<std::string> walls, bool fails, bool needed = true) {
  DoctorPart part{name, "a call", std::move(walls), needed, true, {}};
  if (fails) part.problem = Finding{name + " does not work", "cure of " + name};
  return part;
}

std::vector<std::string> missing(const DoctorFindings& findings) {
  std::vector<std::string> names;
  const json document = doctor_json(findings);
  for (const auto& entry : document["missing"]) names.push_back(entry["what"]);
  return names;
}

}  // namespace

TEST_CASE("a message of the house is a problem and its cure") {
  CHECK(finding_of("do x: it fails; install y; or z", "usual").why == "do x: it fails");
  CHECK(finding_of("do x: it fails; install y; or z", "usual").cure == "install y; or z");
  CHECK(finding_of("do x: it fails", "usual").cure == "usual");
}

TEST_CASE("a host is able when one delegate keeps every wall") {
  const json good = sample::record(nullptr);
  CHECK(doctor_json(findings_of({run_of("crun", good), run_of("runc", good)}))["able"] == true);
  CHECK(doctor_json(findings_of({run_of("crun", broken("memory", "max")), run_of("runc", good)}))["able"] == true);
  CHECK(doctor_json(findings_of({run_of("crun", broken("memory", "max"))}))["able"] == false);
  CHECK(doctor_json(findings_of({run_of("crun", nullptr)}))["able"] == false);
  CHECK(doctor_json(findings_of({}))["able"] == false);
  CHECK(doctor_json(findings_of({run_of("crun", good)}))["missing"].empty());
}

TEST_CASE("a broken wall is named unless a part that is missing explains it") {
  auto findings = findings_of({run_of("crun", broken("memory", "max"))});
  CHECK(missing(findings) == std::vector<std::string>{"memory with crun"});
  const json entry = doctor_json(findings)["missing"][0];
  CHECK(entry["why"] == "/proc/PID/x of ID: expected 0, observed max");
  CHECK(entry["cure"].get<std::string>().find("docs/verdicts.md") != std::string::npos);
  findings.parts = {part("memory limit", {"memory"}, true), part("overlay", {"rootfs"}, true, false)};
  CHECK(missing(findings) == std::vector<std::string>{"memory limit"});
  findings.parts = {part("pidfd", {"teardown"}, true), part("other", {"memory"}, false)};
  CHECK(missing(findings) == std::vector<std::string>{"pidfd", "memory with crun"});
}

TEST_CASE("a delegate that cannot be run is missing, unless that follows from a part") {
  auto run = run_of("crun", nullptr);
  run.problems = {{"find crun: not there", "install it"}, {"it does not fit", "mount it"}};
  CHECK(missing(findings_of({run})) == std::vector<std::string>{"crun", "crun"});
  run.follows = true;
  CHECK(missing(findings_of({run})).empty());
}

TEST_CASE("the table has every part, wall, cure and the outcome") {
  auto findings = findings_of({run_of("crun", sample::record(nullptr)), run_of("runc", broken("memory", "max"))});
  findings.parts = {part("works-well", {}, false), part("overlay", {}, true, false), part("filter dump", {}, true)};
  findings.engines = {{"docker", "/usr/bin/docker", "/run/docker.sock", true, "24", "run\x1b[31mc", "systemd", ""},
                      {"podman", "", "", false, "", "", "", ""}};
  const std::string table = doctor_table(doctor_json(findings), false);
  for (const auto& wall : wall_names()) CHECK(table.find("\n" + wall + " ") != std::string::npos);
  CHECK(table.find("docker      says it is 24, default runtime run\\x1b[31mc, cgroup driver systemd") !=
        std::string::npos);
  CHECK(table.find("podman      not found") != std::string::npos);
  CHECK(table.find("works-well                  works ") != std::string::npos);
  CHECK(table.find("overlay                     absent    a call (this policy does not need it)") != std::string::npos);
  CHECK(table.find("filter dump                 MISSING ") != std::string::npos);
  CHECK(table.find("missing     filter dump: filter dump does not work\ncure        cure of filter dump\n") !=
        std::string::npos);
  CHECK(table.find("\nmemory      held    not  ") != std::string::npos);
  CHECK(table.ends_with("able        every wall can be enforced and observed here, with crun\n"));
  findings.runs[0] = run_of("crun", broken("syscalls", "none"));
  findings.runs[0].loosened = sample::record(nullptr);
  CHECK(doctor_table(doctor_json(findings), false)
            .ends_with("NOT ABLE    no delegate can keep every wall of strict here; with filter_proof: compiled in the "
                       "profile, crun can\n"));
}
