#include "oci/limits_page.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

using namespace benchsand;

namespace {

const std::string kSource = BENCHSAND_SOURCE_DIR;

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  REQUIRE_MESSAGE(file.good(), path);
  return {std::istreambuf_iterator<char>(file), {}};
}

Profile shipped(const std::string& name) {
  const auto profile = parse_profile(read_file(kSource + "/profiles/" + name + ".yaml"), name + ".yaml");
  if (!profile) FAIL(profile.message());
  CHECK(profile->name == name);
  return *profile;
}

}  // namespace

TEST_CASE("docs/limits.md is what the shipped profiles say") {
  std::set<std::string> names;  // sorted, as `benchsand limits` lists them
  for (const auto& entry : std::filesystem::directory_iterator(kSource + "/profiles")) {
    if (entry.path().extension() == ".yaml") names.insert(entry.path().stem().string());
  }
  std::vector<Profile> profiles;
  for (const std::string& name : names) profiles.push_back(shipped(name));
  REQUIRE(profiles.size() >= 2);
  // Write `benchsand limits --markdown` there when this fails.
  CHECK(read_file(kSource + "/docs/limits.md") == limits_markdown(profiles));
}

TEST_CASE("the table names every limit with its bounds") {
  const Profile profile = shipped("strict");
  const std::string table = limits_table(profile);
  CHECK(table.starts_with("Profile strict\n\n"));
  for (const LimitField& field : kLimitFields) {
    CAPTURE(field.name);
    std::string start = "\n";
    start.append(field.name).append(" ");
    CHECK(table.find(start) != std::string::npos);
  }

  Profile other = profile;
  other.limits["memory"].maximum = 12345;
  CHECK(limits_table(other) != table);
  CHECK(limits_table(other).find("12345B") != std::string::npos);
  CHECK(limits_markdown({other}).find("| memory | 256MiB | 12345B |") != std::string::npos);
}

TEST_CASE("every fixed bound of the profile is on the page") {
  const Profile profile = shipped("strict");
  const auto differs = [&](auto change) {
    Profile other = profile;
    change(other);
    return limits_table(other) != limits_table(profile) && limits_markdown({other}) != limits_markdown({profile});
  };
  CHECK(differs([](Profile& p) { p.stdio_total_bytes += 1; }));
  CHECK(differs([](Profile& p) { p.memory_headroom_bytes += 1; }));
  CHECK(differs([](Profile& p) { p.collect.files += 1; }));
  CHECK(differs([](Profile& p) { p.collect.bytes += 1; }));
  CHECK(differs([](Profile& p) { p.collect.depth += 1; }));
  CHECK(differs([](Profile& p) { p.uid += 1; }));
  CHECK(differs([](Profile& p) { p.gid += 1; }));
  CHECK(differs([](Profile& p) { p.filter_proof = FilterProof::compiled; }));
  CHECK(differs([](Profile& p) { p.rootfs_mount = RootfsMount::bind; }));
  CHECK(differs([](Profile& p) { p.egress_counters = {EgressCounter::packets}; }));
  CHECK(differs([](Profile& p) { p.user_namespace = UserNamespace::host; }));
  CHECK(differs([](Profile& p) { p.exec = ExecRule::deny; }));
  CHECK(differs([](Profile& p) { p.without_runtime = {"rootfs"}; }));
  CHECK(differs([](Profile& p) { p.cpuset = "0-1"; }));
}
