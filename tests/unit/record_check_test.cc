// A record with a digest of its own is believed no further than its evidence goes.
#include "oci/record_check.h"

#include <doctest/doctest.h>

#include "sample_record.h"

using namespace benchsand;
using nlohmann::json;

namespace {

// What is said of the good record after one change.
std::string said(void (*change)(json&)) {
  json record = sample::record(nullptr);
  change(record);
  const auto checked = check_record(record);
  return checked ? "accepted" : checked.error().message;
}

const std::string kNot = "its verdict does not follow from its evidence: ";

}  // namespace

TEST_CASE("a record as benchsand writes it is accepted") {
  CHECK(said([](json&) {}) == "accepted");
  const Policy policy = sample::policy();
  const HostFacts host = sample::host(CgroupLayout::hybrid);
  const auto rules = wall_rules(policy, host);
  auto evidence = sample::evidence(rules);
  evidence.replace("memory.limit", {Value(std::uint64_t{1}), "test"});
  End end;
  end.cause = Cause::exited;
  end.exit_code = 0;
  const auto verdict = judge(rules, evidence, end, std::nullopt);
  CHECK_FALSE(verdict.scored);
  CHECK(check_record(make_record(policy, host, {}, rules, evidence, end, verdict)).has_value());
}

TEST_CASE("each kind of forgery is named") {
  CHECK(said([](json& r) { r["schema"] = "other/v1"; }) == kNot + "the schema \"other/v1\" is another one");
  CHECK(said([](json& r) { r["verdict"]["tier"] = "attested"; }) == kNot + "no run has the tier \"attested\"");
  CHECK(said([](json& r) { r["verdict"]["tier"] = nullptr; }) == kNot + "no run has the tier null");
  CHECK(said([](json& r) { r["verdict"]["failures"].push_back("x"); }) == kNot + "it is scored and names broken walls");
  CHECK(said([](json& r) {
          r["end"]["cause"] = "cpu-time";
        }).starts_with(kNot + "the outcome \"succeeded\" does not follow from the end "));
  CHECK(said([](json& r) { r["end"]["exit_code"] = 1; }).find("\"succeeded\" does not follow") != std::string::npos);
  CHECK(said([](json& r) { r["end"]["cause"] = "killed"; }).find("\"succeeded\" does not follow") != std::string::npos);
  CHECK(said([](json& r) { r["evidence"]["established"]["memory"]["swap"]["observed"] = "max"; }) ==
        kNot + "memory.swap was expected \"0\" and observed \"max\"");
  CHECK(said([](json& r) {
          r["evidence"]["spent"]["memory"]["peak"]["observed"] = 1ULL << 60;
        }).starts_with(kNot + "memory.peak was expected \"at most "));
  CHECK(said([](json& r) {
          r["evidence"]["established"]["rootfs"]["identity"]["observed"] = nullptr;
        }).ends_with("and observed null"));
  CHECK(said([](json& r) {
          for (const char* section : {"established", "spent", "after"}) r["evidence"][section].erase("memory");
        }) == kNot + "nothing was observed of the wall memory");
  CHECK(said([](json& r) { r["verdict"]["scored"] = false; }) ==
        kNot + "a run without a score has no tier, and the outcome refused or fault");
}
