#include "shim/host_egress.h"

#include <linux/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace benchsand {

namespace {

constexpr std::string_view kName = "benchsand";  // as bpftool shows them
constexpr std::uint32_t kMostPrograms = 64;      // the kernel's limit on one cgroup and hook

using Counts = std::array<std::uint64_t, kEgressCounts.size()>;

struct Place {
  bpf_prog_type type;
  bpf_attach_type hook;
};

Place place_of(EgressHook hook) {
  switch (hook) {
    case EgressHook::sock_create:
      return {BPF_PROG_TYPE_CGROUP_SOCK, BPF_CGROUP_INET_SOCK_CREATE};
    case EgressHook::connect4:
      return {BPF_PROG_TYPE_CGROUP_SOCK_ADDR, BPF_CGROUP_INET4_CONNECT};
    case EgressHook::connect6:
      return {BPF_PROG_TYPE_CGROUP_SOCK_ADDR, BPF_CGROUP_INET6_CONNECT};
    case EgressHook::sendmsg4:
      return {BPF_PROG_TYPE_CGROUP_SOCK_ADDR, BPF_CGROUP_UDP4_SENDMSG};
    case EgressHook::sendmsg6:
      return {BPF_PROG_TYPE_CGROUP_SOCK_ADDR, BPF_CGROUP_UDP6_SENDMSG};
    case EgressHook::egress:
      return {BPF_PROG_TYPE_CGROUP_SKB, BPF_CGROUP_INET_EGRESS};
  }
  std::abort();  // not a value of the enumeration
}

std::uint64_t address(const void* pointer) {
  return reinterpret_cast<std::uint64_t>(pointer);
}

// What a person can do about it.
std::string cure(int error_number) {
  switch (error_number) {
    case ENOSYS:
    case EINVAL:
      return "; the kernel needs CONFIG_BPF_SYSCALL and CONFIG_CGROUP_BPF";
    case EPERM:
    case EACCES:
      return "; benchsand needs CAP_BPF and CAP_NET_ADMIN or CAP_SYS_ADMIN, a seccomp profile around it that lets "
             "bpf(2) "
             "through (in a container: --privileged), and no program on a cgroup above that forbids others";
  }
  return "";
}

std::unexpected<Error> bpf_error(const std::string& what, int error_number) {
  const std::string reason = sys_error("bpf", what, error_number).error().message;
  return fault(reason + cure(error_number) + "; or leave the counter out of egress_counters in the profile");
}

Result<int> bpf(bpf_cmd command, bpf_attr& attributes, const std::string& what) {
  const long result = ::syscall(SYS_bpf, command, &attributes, sizeof attributes);
  if (result < 0) return bpf_error(what, errno);
  return static_cast<int>(result);
}

// Every field that a command does not use must be zero, the padding between them too.
bpf_attr no_attributes() {
  bpf_attr attributes;
  std::memset(&attributes, 0, sizeof attributes);
  return attributes;
}

// One value with all counts in it, so that a program needs no look-up.
Result<Fd> create_counts() {
  bpf_attr attributes = no_attributes();
  attributes.map_type = BPF_MAP_TYPE_ARRAY;
  attributes.key_size = sizeof(std::uint32_t);
  attributes.value_size = sizeof(Counts);
  attributes.max_entries = 1;
  std::memcpy(attributes.map_name, kName.data(), kName.size());
  return Fd(TRY(bpf(BPF_MAP_CREATE, attributes, "BPF_MAP_CREATE")));
}

Result<Fd> load_program(EgressHook hook, const Fd& counts, bool deny) {
  static_assert(sizeof(EbpfInstruction) == sizeof(bpf_insn));
  const auto instructions = egress_program(hook, counts.get(), deny);
  bpf_attr attributes = no_attributes();
  attributes.prog_type = place_of(hook).type;
  attributes.expected_attach_type = place_of(hook).hook;
  attributes.insns = address(instructions.data());
  attributes.insn_cnt = static_cast<std::uint32_t>(instructions.size());
  attributes.license = address("Apache-2.0");
  std::memcpy(attributes.prog_name, kName.data(), kName.size());
  return Fd(TRY(bpf(BPF_PROG_LOAD, attributes, std::string("BPF_PROG_LOAD ") + to_text(hook))));
}

Result<std::uint32_t> id_of(const Fd& program) {
  bpf_prog_info info;
  std::memset(&info, 0, sizeof info);
  bpf_attr attributes = no_attributes();
  attributes.info.bpf_fd = static_cast<std::uint32_t>(program.get());
  attributes.info.info_len = sizeof info;
  attributes.info.info = address(&info);
  TRY(bpf(BPF_OBJ_GET_INFO_BY_FD, attributes, "BPF_OBJ_GET_INFO_BY_FD"));
  return info.id;
}

// The link ends with its descriptor, so with benchsand. Programs of others, above and beside, stay and are asked too.
Result<Fd> link_program(const Fd& program, EgressHook hook, const Fd& cgroup, const std::string& name) {
  bpf_attr attributes = no_attributes();
  attributes.link_create.prog_fd = static_cast<std::uint32_t>(program.get());
  attributes.link_create.target_fd = static_cast<std::uint32_t>(cgroup.get());
  attributes.link_create.attach_type = place_of(hook).hook;
  return Fd(TRY(bpf(BPF_LINK_CREATE, attributes, std::string("BPF_LINK_CREATE ") + to_text(hook) + " on " + name)));
}

// Those that run for a process in this cgroup, wherever above they are attached.
Result<std::vector<std::uint32_t>> effective_programs(const Fd& cgroup, EgressHook hook) {
  std::vector<std::uint32_t> ids(kMostPrograms);
  bpf_attr attributes = no_attributes();
  attributes.query.target_fd = static_cast<std::uint32_t>(cgroup.get());
  attributes.query.attach_type = place_of(hook).hook;
  attributes.query.query_flags = BPF_F_QUERY_EFFECTIVE;
  attributes.query.prog_ids = address(ids.data());
  attributes.query.prog_cnt = kMostPrograms;
  TRY(bpf(BPF_PROG_QUERY, attributes, std::string("BPF_PROG_QUERY ") + to_text(hook)));
  ids.resize(std::min(attributes.query.prog_cnt, kMostPrograms));
  return ids;
}

Result<Counts> read_counts(const Fd& counts) {
  Counts values{};
  const std::uint32_t key = 0;
  bpf_attr attributes = no_attributes();
  attributes.map_fd = static_cast<std::uint32_t>(counts.get());
  attributes.key = address(&key);
  attributes.value = address(values.data());
  TRY(bpf(BPF_MAP_LOOKUP_ELEM, attributes, "BPF_MAP_LOOKUP_ELEM"));
  return values;
}

}  // namespace

HostEgress HostEgress::load(const Policy& policy) {
  HostEgress egress;
  egress.counters_ = policy.egress_counters;
  egress.state_ = egress.load_all(!policy.taken_down.contains(Relaxation::bpf_deny));
  return egress;
}

Result<void> HostEgress::load_all(bool deny) {
  if (counters_.empty()) return {};
  counts_ = TRY(create_counts());
  for (const EgressHook hook : kEgressHooks) {
    if (!has(counters_, counter_of(hook))) continue;
    Fd program = TRY(load_program(hook, counts_, deny));
    const std::uint32_t id = TRY(id_of(program));
    programs_.push_back({hook, std::move(program), Fd(), id});
  }
  return {};
}

void HostEgress::attach(const RunCgroup& cgroup) {
  if (state_) state_ = attach_all(cgroup.bpf_outer(), cgroup.bpf_name());
}

Result<void> HostEgress::attach_all(const Fd& cgroup, const std::string& name) {
  for (Program& program : programs_) program.link = TRY(link_program(program.program, program.hook, cgroup, name));
  return {};
}

Result<std::string> HostEgress::attached(const Fd& cgroup) const {
  if (!state_) return std::unexpected(state_.error());
  std::string found;
  for (const Program& program : programs_) {
    const auto ids = TRY(effective_programs(cgroup, program.hook));
    if (std::find(ids.begin(), ids.end(), program.id) != ids.end())
      found += (found.empty() ? "" : " ") + std::string(to_text(program.hook));
  }
  return found.empty() ? "none" : found;
}

void HostEgress::observe_attached(const RunCgroup& cgroup, const std::string& suffix, Evidence& evidence) const {
  evidence.take("network.bpf" + suffix, attached(cgroup.bpf_leaf()), "BPF_PROG_QUERY of " + cgroup.bpf_name());
}

void HostEgress::observe_spent(Evidence& evidence) const {
  if (counters_.empty()) return;
  const auto counts = state_ ? read_counts(counts_) : Result<Counts>(std::unexpected(state_.error()));
  for (std::size_t i = 0; i < kEgressCounts.size(); ++i) {
    if (!has(counters_, kEgressCounts[i].counter)) continue;
    evidence.take(std::string("network.") + kEgressCounts[i].name,
                  counts ? Result<std::uint64_t>((*counts)[i]) : Result<std::uint64_t>(std::unexpected(counts.error())),
                  "map of the BPF programs");
  }
}

}  // namespace benchsand
