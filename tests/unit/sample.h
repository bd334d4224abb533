// A policy as the strict profile gives it, and evidence of a run in which every wall stood.
#pragma once

#include "oci/policy.h"
#include "oci/walls.h"

namespace benchsand::sample {

inline Policy policy() {
  Policy policy;
  policy.task_name = "sample";
  policy.task_sha256 = std::string(64, 'a');
  policy.profile_name = "strict";
  policy.profile_sha256 = std::string(64, 'b');
  policy.command = {"/bin/true", "a 'b' \"c\" $d \n e"};
  policy.env = {"HOME=/output", "PATH=/bin", "TMPDIR=/output"};
  policy.workdir = policy.output = "/output";
  policy.rootfs = "/srv/rootfs";
  policy.inputs = {{"/srv/task", "/task"}};
  policy.limits = {2'000'000, 10'000'000, 256 << 20, 32, 64 << 20, 1024, 1 << 20, 1 << 20, 256, 1000};
  policy.stdio_total_bytes = std::uint64_t{4} << 30;
  policy.collect = {1024, 64 << 20, 16};
  policy.uid = policy.gid = 65534;
  policy.host_ids = HostIds{2013265920, 2013265921};
  policy.masked_paths = {"/proc/keys"};
  policy.readonly_paths = {"/proc/sys"};
  policy.timeline_us = 100'000;
  policy.seccomp.allow = {"read", "write"};
  policy.seccomp.allow_if = {{"socket", 0, ~std::uint64_t{0}, {1}}};
  policy.seccomp.refuse_with = {{"EACCES", {"socket"}}, {"ENOSYS", {"clone3"}}};
  policy.egress_counters = {EgressCounter::sockets, EgressCounter::connects, EgressCounter::packets};
  policy.seccomp.notify = {"execve", "execveat", "exit_group"};
  policy.refusals = {100000, 20000};
  return policy;
}

inline HostFacts host(CgroupLayout layout) {
  return {layout, "6.1.0", "crun", "1.8.1", 2};
}

// What a rule wants, found by trying: the number or text it names, or something of its kind.
inline Value value_for(const Rule& rule, const Evidence& evidence) {
  const std::uint64_t number =
      rule.expected.find_first_not_of("0123456789") == std::string::npos ? std::stoull(rule.expected) : 7;
  const std::string prefix = "same as ";
  const Observation* other =
      rule.expected.starts_with(prefix) ? evidence.find(rule.expected.substr(prefix.size())) : nullptr;
  std::vector<Value> candidates;
  if (other && other->value()) candidates.push_back(*other->value());
  if (const auto range = rule.expected.find(" to "); range != std::string::npos)
    candidates.emplace_back(std::uint64_t{std::stoull("0" + rule.expected.substr(range + 4))});
  for (const auto& guess : {Value(number), Value(rule.expected), Value(std::uint64_t{0}), Value(std::string(64, 'c')),
                            Value(std::string("name")), Value(std::string("0-1"))})
    candidates.push_back(guess);
  candidates.emplace_back(rule.expected.substr(0, rule.expected.find(", or ")));
  for (const auto& candidate : candidates)
    if (rule.holds(candidate, evidence)) return candidate;
  return std::string("no value satisfies this rule");
}

inline Evidence evidence(const std::vector<Rule>& rules) {
  Evidence all;
  // Twice: a rule may compare with an observation that comes later.
  for (int pass = 0; pass < 2; ++pass)
    for (const auto& rule : rules)
      if (!all.find(rule.key)) {
        const Value value = value_for(rule, all);
        if (rule.holds(value, all)) all.set(rule.key, value, "sample of " + rule.key);
      }
  return all;
}

}  // namespace benchsand::sample
