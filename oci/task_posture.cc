#include "oci/task_posture.h"

#include <algorithm>

namespace benchsand {

namespace {

constexpr std::size_t kFindingsInFull = 4;

std::string joined(const std::vector<std::uint64_t>& numbers) {
  std::string text;
  for (const auto number : numbers) text += (text.empty() ? "" : " ") + std::to_string(number);
  return text.empty() ? "none" : text;
}

void note(std::string& list, const std::string& name, const std::string& seen, const std::string& expected) {
  if (seen != expected) list += (list.empty() ? "" : ", ") + name + " " + seen + " instead of " + expected;
}

void note(std::string& list, const std::string& name, std::uint64_t seen, std::uint64_t expected) {
  note(list, name, std::to_string(seen), std::to_string(expected));
}

std::string hexadecimal(std::uint64_t bits) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (int shift = 60; shift >= 0; shift -= 4)
    if (const std::uint64_t digit = bits >> shift & 15; digit != 0 || !text.empty() || shift == 0)
      text += kDigits[digit];
  return text;
}

std::string next_line(const std::string& text, std::size_t& at) {
  const std::size_t end = std::min(text.find('\n', at), text.size());
  std::string line = text.substr(at, end - at);
  at = std::min(end + 1, text.size());
  return line;
}

}  // namespace

PostureDifferences posture_differences(const TaskPosture& task, const TaskPosture& init) {
  PostureDifferences found;
  for (std::size_t i = 0; i < kPostureNamespaces.size(); ++i)
    note(found.namespaces, kPostureNamespaces[i], task.namespaces[i], init.namespaces[i]);
  const ProcessStatus &a = task.status, &b = init.status;
  note(found.privileges, "uid", joined(a.uid), joined(b.uid));
  note(found.privileges, "gid", joined(a.gid), joined(b.gid));
  note(found.privileges, "groups", joined(a.groups), joined(b.groups));
  const auto capabilities = [&](const char* set, std::uint64_t ProcessStatus::*bits) {
    note(found.privileges, std::string(set) + " capabilities", hexadecimal(a.*bits), hexadecimal(b.*bits));
  };
  capabilities("inheritable", &ProcessStatus::cap_inheritable);
  capabilities("permitted", &ProcessStatus::cap_permitted);
  capabilities("effective", &ProcessStatus::cap_effective);
  capabilities("bounding", &ProcessStatus::cap_bounding);
  capabilities("ambient", &ProcessStatus::cap_ambient);
  note(found.privileges, "no_new_privs", a.no_new_privs, b.no_new_privs);
  note(found.syscalls, "seccomp mode", a.seccomp_mode, b.seccomp_mode);
  note(found.syscalls, "filters", a.seccomp_filters, b.seccomp_filters);
  if (const auto line = cgroup_difference(task.cgroups, init.cgroups); !line.empty()) found.cgroups = "in " + line;
  return found;
}

std::string cgroup_difference(const std::string& task, const std::string& init) {
  if (task == init) return "";
  for (std::size_t at = 0, init_at = 0; at < task.size();) {
    const std::string line = next_line(task, at);
    if (init_at == init.size() || line != next_line(init, init_at)) return line;
  }
  return "fewer hierarchies";
}

bool in_root_cgroups(const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::string line = next_line(text, at);
    const std::size_t path = line.find(":/");
    if (path == std::string::npos || line.find_first_not_of("/.", path + 1) != std::string::npos) return false;
  }
  return !text.empty();
}

void Findings::add(const std::string& task, const std::string& difference) {
  if (difference.empty()) return;
  if (++count_ <= kFindingsInFull) first_ += (first_.empty() ? "" : "; ") + task + ": " + difference;
}

std::string Findings::text() const {
  if (none()) return "none";
  return first_ + (count_ > kFindingsInFull ? "; and " + std::to_string(count_ - kFindingsInFull) + " more" : "");
}

}  // namespace benchsand
