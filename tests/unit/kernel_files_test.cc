// The parsers on the kernel's own files, and on the legal forms that the captured ones do not show.
#include "oci/kernel_files.h"

#include <doctest/doctest.h>

#include "tests/unit/fixtures.h"

namespace benchsand {
namespace {

template <class T>
T value(const Result<T>& result) {
  REQUIRE_MESSAGE(result.has_value(), result.error().message);
  return *result;
}

std::uint64_t counter(const std::string& name) {
  return value(parse_counter(fixture(name), name));
}

std::uint64_t limit(const std::string& name) {
  const std::optional<std::uint64_t> parsed = value(parse_limit(fixture(name), name));
  REQUIRE_MESSAGE(parsed.has_value(), name << " says max");
  return *parsed;
}

using Numbers = std::vector<std::uint64_t>;

TEST_CASE("v1 control files of a held container") {
  for (const std::string door : kHybridDoors) {
    CAPTURE(door);
    CHECK(counter(door + "memory.limit_in_bytes") == 268435456);
    CHECK(counter(door + "memory.memsw.limit_in_bytes") == 268435456);
    CHECK(counter(door + "memory.max_usage_in_bytes") > 0);
    CHECK(counter(door + "cpuacct.usage") > 0);
    CHECK(counter(door + "pids.peak") > 0);
    CHECK(limit(door + "pids.max") == 32);
    CHECK(value(parse_cfs_quota(fixture(door + "cpu.cfs_quota_us"), door)) == 100000);
    const auto oom = value(parse_keyed(fixture(door + "memory.oom_control"), door, {"oom_kill_disable", "oom_kill"}));
    CHECK(oom == KeyedCounters{{"oom_kill", 0}, {"oom_kill_disable", 0}, {"under_oom", 0}});
    CHECK(value(parse_keyed(fixture(door + "pids.events"), door, {"max"})) == KeyedCounters{{"max", 0}});
    CHECK(value(parse_keyed(fixture(door + "cgroup.events"), door, {"populated"})).at("populated") == 1);
  }
}

TEST_CASE("v2 control files of a held container") {
  for (const std::string door : kUnifiedDoors) {
    CAPTURE(door);
    CHECK(limit(door + "memory.max") == 268435456);
    CHECK(limit(door + "memory.swap.max") == 0);
    CHECK(limit(door + "pids.max") == 32);
    CHECK(counter(door + "memory.peak") > 0);
    CHECK(counter(door + "memory.swap.current") == 0);
    const CpuMax cpu = value(parse_cpu_max(fixture(door + "cpu.max"), door));
    CHECK(cpu.quota_us == 100000);
    CHECK(cpu.period_us == 100000);
    CHECK(value(parse_keyed(fixture(door + "memory.events"), door, {"max", "oom", "oom_kill"})).at("oom_kill") == 0);
    CHECK(value(parse_keyed(fixture(door + "cpu.stat"), door, {"usage_usec"})).contains("nr_throttled"));
    CHECK(value(parse_keyed(fixture(door + "pids.events"), door, {"max"})).at("max") == 0);
    CHECK(value(parse_keyed(fixture(door + "cgroup.events"), door, {"populated"})).at("populated") == 1);
  }
}

TEST_CASE("an absent limit is told from a number") {
  CHECK(value(parse_limit("max\n", "x")) == std::nullopt);
  CHECK(value(parse_limit("0\n", "x")) == 0);
  CHECK(value(parse_cfs_quota("-1\n", "x")) == std::nullopt);
  CHECK(value(parse_cpu_max("max 100000\n", "x")).quota_us == std::nullopt);
  CHECK(value(parse_counter("18446744073709551615\n", "x")) == UINT64_MAX);
}

TEST_CASE("membership in control groups") {
  for (const std::string door : kHybridDoors) {
    const auto all = value(parse_cgroup_membership(fixture(door + "cgroup"), door));
    CHECK(all.size() == 11);
    for (const CgroupMembership& one : all) CHECK(one.path == "/benchsand/r1/ct");
    CHECK(all.back().hierarchy == 0);
    CHECK(all.back().controllers.empty());
    CHECK(all[1].controllers == std::vector<std::string>{"name=systemd"});
  }
  for (const std::string door : kUnifiedDoors) {
    const auto all = value(parse_cgroup_membership(fixture(door + "cgroup"), door));
    REQUIRE(all.size() == 1);
    CHECK(all[0].hierarchy == 0);
    CHECK(all[0].path == "/benchsand/r1/ct");
  }
  const auto all = value(parse_cgroup_membership("3:cpu,cpuacct:/a:b: c\n", "x"));
  CHECK(all[0].controllers == std::vector<std::string>{"cpu", "cpuacct"});
  CHECK(all[0].path == "/a:b: c");
}

TEST_CASE("status of a held process") {
  for (const std::string door : kDoors) {
    CAPTURE(door);
    const ProcessStatus status = value(parse_process_status(fixture(door + "status"), door));
    CHECK(status.name == (door.find("crun") != std::string::npos ? "crun" : "runc:[2:INIT]"));
    CHECK(status.uid == Numbers(4, 65534));
    CHECK(status.gid == Numbers(4, 65534));
    CHECK(status.groups.empty());
    CHECK(status.parent > 1);
    CHECK(status.cap_inheritable + status.cap_permitted + status.cap_effective == 0);
    CHECK(status.cap_bounding + status.cap_ambient == 0);
    CHECK(status.no_new_privs == 1);
    CHECK(status.seccomp_mode == 2);
    CHECK(status.seccomp_filters == 1);
  }
}

TEST_CASE("groups and capabilities that are not empty") {
  std::string text = fixture("cgroup/hybrid-6.18/crun/status");
  text.replace(text.find("Groups:\t "), 9, "Groups:\t0 27 1000 ");
  text.replace(text.find("CapBnd:\t0000000000000000"), 24, "CapBnd:\t000001ffffffffff");
  const ProcessStatus status = value(parse_process_status(text, "x"));
  CHECK(status.groups == Numbers{0, 27, 1000});
  CHECK(status.cap_bounding == 0x1ffffffffff);
}

TEST_CASE("pressure: totals, with and without a line for tasks that all stand still") {
  const std::string some = "some avg10=59.61 avg60=24.21 avg300=21.23 total=3431573478\n";
  const Pressure both = value(parse_pressure(some + "full avg10=0.00 avg60=0.00 avg300=0.00 total=7\n", "x"));
  CHECK(both.some_us == 3431573478);
  CHECK(both.full_us == 7);
  CHECK_FALSE(value(parse_pressure(some, "x")).full_us);
}

TEST_CASE("bytes written to block devices, over all of them") {
  CHECK(value(parse_io_stat_writes("", "x")) == 0);
  CHECK(value(parse_io_stat_writes("8:0 rbytes=90 wbytes=4096 rios=2 wios=1 dbytes=0 dios=0\n"
                                   "253:1 rbytes=0 wbytes=1 rios=0 wios=1 dbytes=0 dios=0\n",
                                   "x")) == 4097);
  // Older kernels name devices without counters, even on the line of the next.
  CHECK(value(parse_io_stat_writes("8:16 \n8:32 8:0 rbytes=90 wbytes=5 rios=2 wios=1 dbytes=0 dios=0\n", "x")) == 5);
  CHECK(value(parse_blkio_writes("Total 0\n", "x")) == 0);
  CHECK(
      value(parse_blkio_writes("8:0 Read 7\n8:0 Write 4096\n8:0 Sync 4100\n8:0 Async 3\n8:0 Discard 0\n8:0 Total 4103\n"
                               "253:1 Read 1\n253:1 Write 2\n253:1 Total 3\nTotal 4106\n",
                               "x")) == 4098);
}

TEST_CASE("numbers, one a line, and none at all") {
  CHECK(value(parse_numbers("", "x")).empty());
  CHECK(value(parse_numbers("0\n17\n4194304\n", "x")) == Numbers{0, 17, 4194304});
}

TEST_CASE("stat of a held process, and a name that imitates the file") {
  for (const std::string door : kDoors) {
    CAPTURE(door);
    const ProcessStat stat = value(parse_process_stat(fixture(door + "stat"), door));
    CHECK(stat.state == 'S');
    CHECK((stat.flags & 0x4) == 0);  // PF_EXITING
    CHECK(stat.flags > 0);
    CHECK(stat.minor_faults > 0);
    CHECK(stat.start_time > 0);
    CHECK(stat.wait_status == 0);
  }
  std::string text = fixture("cgroup/hybrid-6.18/crun/stat");
  text.replace(text.find("(crun)"), 6, "(a) Z 1 (\n)");
  CHECK(value(parse_process_stat(text, "x")).state == 'S');
  text.replace(text.rfind(" 0\n"), 3, " 1792\n");
  CHECK(value(parse_process_stat(text, "x")).wait_status == 7 << 8);
}

TEST_CASE("network files of a namespace with nothing but lo") {
  for (const std::string door : kDoors) {
    CAPTURE(door);
    const auto links = value(parse_net_dev(fixture(door + "net_dev"), door));
    REQUIRE(links.size() == 1);
    CHECK(links[0].name == "lo");
    CHECK(links[0].rx_bytes == 0);
    CHECK(links[0].tx_bytes == 0);
    CHECK(value(parse_ipv4_routes(fixture(door + "net_route"), door)).empty());
    CHECK(value(parse_snmp(fixture(door + "net_snmp"), door, "Ip", "OutNoRoutes")) == 0);
    CHECK(value(parse_snmp(fixture(door + "net_snmp"), door, "Tcp", "ActiveOpens")) == 0);
    CHECK(value(parse_snmp(fixture(door + "net_snmp"), door, "Ip", "DefaultTTL")) == 64);
  }
  for (const std::string door : kHybridDoors) {
    CHECK(value(parse_ipv6_routes(fixture(door + "net_ipv6_route"), door)) ==
          std::vector<std::string>{"lo", "lo", "lo"});
    CHECK(value(parse_snmp6(fixture(door + "net_snmp6"), door, "Ip6OutNoRoutes")) == 0);
  }
}

TEST_CASE("a link without a blank before its numbers, routes of other links") {
  const std::string captured = fixture("cgroup/v2-6.1/crun/net_dev");
  const std::string header = captured.substr(0, captured.find("    lo:"));
  const auto links = value(parse_net_dev(header + "eth0:7 1 0 0 0 0 0 0 9 1 0 0 0 0 0 0\n", "x"));
  REQUIRE(links.size() == 1);
  CHECK(links[0].name == "eth0");
  CHECK(links[0].rx_bytes == 7);
  CHECK(links[0].tx_bytes == 9);
  const std::string routes = fixture("cgroup/v2-6.1/crun/net_route");
  CHECK(value(parse_ipv4_routes(routes + "eth0\t00000000\t0100000A\t0003\t0\t0\t0\t00000000\t0\t0\t0   \n", "x")) ==
        std::vector<std::string>{"eth0"});
  CHECK(value(parse_ipv6_routes("", "x")).empty());
}

TEST_CASE("limits, descriptor flags and namespace links") {
  for (const std::string door : kDoors) {
    CAPTURE(door);
    const auto limits = value(parse_process_limits(fixture(door + "limits"), door));
    CHECK(limits.size() == 16);
    CHECK(limits.at("Max open files").soft == "256");
    CHECK(limits.at("Max open files").hard == "256");
    CHECK(limits.at("Max cpu time").hard == "unlimited");
    CHECK(limits.at("Max nice priority").soft == "0");
    CHECK(value(parse_fd_flags(fixture(door + "fdinfo_0"), door)) < 02000000);
    CHECK(value(parse_namespace_link(fixture(door + "ns_net"), "net", door)) > 4026531840);
  }
  CHECK(value(parse_fd_flags("pos:\t0\nflags:\t02100002\nmnt_id:\t15\ntfd: 5 events: 1\ntfd: 6 events: 1\n", "x")) ==
        02100002);
}

}  // namespace
}  // namespace benchsand
