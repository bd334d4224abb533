// One parser per kernel file. Text in, value out; nothing is opened here.
//
// Rules for all of them (fail closed): the text is the whole file, ends in '\n', holds no NUL; numbers are decimal digits
// without sign and below 2^64; `max` only where said; keys are unique, required keys present, exactly one space between
// key and value. A message names the file it was given as `source` and quotes the offending line.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "oci/result.h"

namespace benchsand {

// memory.current, pids.peak, memory.max_usage_in_bytes, cpuacct.usage, ...: one number.
Result<std::uint64_t> parse_counter(const std::string& text, const std::string& source);
// memory.max, memory.swap.max, pids.max: one number, or `max` = nullopt.
Result<std::optional<std::uint64_t>> parse_limit(const std::string& text, const std::string& source);
// cpu.cfs_quota_us may be -1 = no quota = nullopt.
Result<std::optional<std::uint64_t>> parse_cfs_quota(const std::string& text, const std::string& source);

struct CpuMax {
  std::optional<std::uint64_t> quota_us;
  std::uint64_t period_us = 0;
};
// cpu.max (v2): "QUOTA|max PERIOD".
Result<CpuMax> parse_cpu_max(const std::string& text, const std::string& source);

// Flat keyed files: cpu.stat, memory.events, memory.oom_control, pids.events, cgroup.events. `required` must be there.
using KeyedCounters = std::map<std::string, std::uint64_t>;
Result<KeyedCounters> parse_keyed(const std::string& text, const std::string& source,
                                  const std::vector<std::string>& required);

// cgroup.procs, cgroup.threads, tasks: a number a line. An empty file is legal.
Result<std::vector<std::uint64_t>> parse_numbers(const std::string& text, const std::string& source);

struct Pressure {
  std::uint64_t some_us = 0;
  std::optional<std::uint64_t> full_us;  // cpu has it since Linux 5.13
};
// /proc/pressure/{cpu,memory,io}: the totals, in microseconds since boot.
Result<Pressure> parse_pressure(const std::string& text, const std::string& source);

// io.stat (v2) and blkio.throttle.io_service_bytes (v1): bytes written, over all devices.
Result<std::uint64_t> parse_io_stat_writes(const std::string& text, const std::string& source);
Result<std::uint64_t> parse_blkio_writes(const std::string& text, const std::string& source);

struct CgroupMembership {
  std::uint32_t hierarchy = 0;
  std::vector<std::string> controllers;
  std::string path;
};
// /proc/PID/cgroup: "4:memory:/a/b" (v1), "0::/a/b" (unified), "9:name=systemd:/". The path may contain ':'.
Result<std::vector<CgroupMembership>> parse_cgroup_membership(const std::string& text, const std::string& source);

struct ProcessStatus {  // /proc/PID/status, the fields the walls speak of; all required
  std::string name;
  std::vector<std::uint64_t> uid, gid;  // real, effective, saved, file system
  std::vector<std::uint64_t> groups;    // may be empty
  std::uint64_t parent = 0;             // PPid
  std::uint64_t own_number = 0;         // the last of NSpid: what the process is called in its own pid namespace
  // Hexadecimal in the file.
  std::uint64_t cap_inheritable = 0, cap_permitted = 0, cap_effective = 0, cap_bounding = 0, cap_ambient = 0;
  std::uint64_t no_new_privs = 0;
  std::uint64_t seccomp_mode = 0;     // 2 = filter
  std::uint64_t seccomp_filters = 0;  // since Linux 5.9
};
Result<ProcessStatus> parse_process_status(const std::string& text, const std::string& source);

struct ProcessStat {               // /proc/PID/stat; the command name may hold spaces, parentheses and newlines
  char state = 0;                  // 'Z' = zombie
  std::uint64_t flags = 0;         // field 9, PF_* of the kernel
  std::uint64_t minor_faults = 0;  // field 10
  std::uint64_t cpu_ticks = 0;     // fields 14 and 15, user and system
  std::uint64_t start_time = 0;    // field 22, clock ticks since boot
  std::uint64_t start_stack = 0;   // field 28, an address that every exec draws anew; 0 for who may not know it
  std::uint64_t wait_status = 0;   // field 52, as waitpid gives it; final once the state is Z
};
Result<ProcessStat> parse_process_stat(const std::string& text, const std::string& source);

struct Link {
  std::string name;
  std::uint64_t rx_bytes = 0, tx_bytes = 0;
};
// /proc/PID/net/dev. Two header lines, then "name: 16 numbers" (no space is required after the colon).
Result<std::vector<Link>> parse_net_dev(const std::string& text, const std::string& source);
// /proc/PID/net/route: header, then a line per IPv4 route; returns the interface of each.
Result<std::vector<std::string>> parse_ipv4_routes(const std::string& text, const std::string& source);
// /proc/PID/net/ipv6_route: no header; returns the interface (last column) of each. An empty file is legal.
Result<std::vector<std::string>> parse_ipv6_routes(const std::string& text, const std::string& source);
// /proc/PID/net/snmp: pairs of lines "Ip: names…" / "Ip: numbers…"; numbers may be -1 (Tcp MaxConn). Returns one value.
Result<std::uint64_t> parse_snmp(const std::string& text, const std::string& source, const std::string& protocol,
                                 const std::string& counter);
// /proc/PID/net/snmp6: "Ip6OutNoRoutes    0".
Result<std::uint64_t> parse_snmp6(const std::string& text, const std::string& source, const std::string& counter);

struct RLimit {
  std::string soft, hard;  // decimal or "unlimited"
};
// /proc/PID/limits, by its first column ("Max open files", ...).
Result<std::map<std::string, RLimit>> parse_process_limits(const std::string& text, const std::string& source);

// /proc/PID/fdinfo/N: the `flags:` line, octal (O_CLOEXEC is 02000000).
Result<std::uint64_t> parse_fd_flags(const std::string& text, const std::string& source);

// A line of /proc/PID/uid_map or gid_map: `count` ids from `inside` on are those from `outside` on in the reader's namespace.
struct IdMapping {
  std::uint64_t inside = 0, outside = 0, count = 0;
};
// Columns are padded with blanks. An empty file is a namespace without a mapping.
Result<std::vector<IdMapping>> parse_id_map(const std::string& text, const std::string& source);

struct IdRange {
  std::uint64_t first = 0, count = 0;
};
// /etc/subuid and /etc/subgid: "NAME:FIRST:COUNT" lines; comments and empty lines are skipped. What is not
// understood is an error: the ids it gives away would be taken.
Result<std::vector<IdRange>> parse_subordinate_ids(const std::string& text, const std::string& source);

// /etc/passwd (user and group id) and /etc/group, as ranges of one id each; comments and empty lines are skipped, and so are the
// lines of NIS that have no id ("+::::::"). Anything else that is not understood is an error here too.
Result<std::vector<IdRange>> parse_passwd_ids(const std::string& text, const std::string& source);
Result<std::vector<IdRange>> parse_group_ids(const std::string& text, const std::string& source);

// A namespace link, "net:[4026531833]": the number, and the type must be `type`.
Result<std::uint64_t> parse_namespace_link(const std::string& link, const std::string& type, const std::string& source);

}  // namespace benchsand
