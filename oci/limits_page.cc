#include "oci/limits_page.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "oci/units.h"

namespace benchsand {
namespace {

using Row = std::array<std::string, 4>;

const char* to_text(FilterProof proof) {
  switch (proof) {
    case FilterProof::dump:
      return "dump";
    case FilterProof::compiled:
      return "compiled";
  }
  std::abort();  // not a value of the enumeration
}

const char* explain(FilterProof proof) {
  switch (proof) {
    case FilterProof::dump:
      return "the attached seccomp filter is read back from the kernel";
    case FilterProof::compiled:
      return "a loosening: benchsand evaluates its own compilation of the rules, not the attached filter";
  }
  std::abort();  // not a value of the enumeration
}

const char* explain(RootfsMount mount) {
  switch (mount) {
    case RootfsMount::overlay:
      return "root file system and inputs are file systems of the run's own";
    case RootfsMount::bind:
      return "a loosening: the host's own files, whose paths and locks a candidate sees";
  }
  std::abort();  // not a value of the enumeration
}

const char* explain(UserNamespace user_namespace) {
  switch (user_namespace) {
    case UserNamespace::own:
      return "each run has host ids of its own";
    case UserNamespace::host:
      return "a loosening: every run's candidate is the same user of the host";
  }
  std::abort();  // not a value of the enumeration
}

const char* explain(ExecRule rule) {
  switch (rule) {
    case ExecRule::allow:
      return "an engine may start further processes in a container, behind the same walls";
    case ExecRule::deny:
      return "an engine may start no further process in a container";
  }
  std::abort();  // not a value of the enumeration
}

std::string walls_of(const Profile& profile) {
  std::string names;
  for (const auto& wall : profile.without_runtime) names += (names.empty() ? "" : ", ") + wall;
  return names.empty() ? "refuse" : names;
}

std::vector<Row> asked_rows(const Profile& profile) {
  std::vector<Row> rows;
  for (const LimitField& field : kLimitFields) {
    const Bound& bound = profile.limits.at(std::string(field.name));
    rows.push_back({std::string(field.name), format_quantity(bound.standard, field.unit),
                    format_quantity(bound.maximum, field.unit), std::string(field.meaning)});
  }
  return rows;
}

// What no task can ask for.
std::vector<Row> fixed_rows(const Profile& profile) {
  const auto bytes = [](std::uint64_t value) { return format_quantity(value, Unit::bytes); };
  const auto count = [](std::uint64_t value) { return format_quantity(value, Unit::count); };
  std::vector<Row> rows = {
      {"stdio_total", bytes(profile.stdio_total_bytes), "", "stdout and stderr together; ends the run"},
      {"memory_headroom", bytes(profile.memory_headroom_bytes), "", "memory must be at least disk plus this"},
      {"collect.files", count(profile.collect.files), "", "files copied out of the output"},
      {"collect.bytes", bytes(profile.collect.bytes), "", "sum of their sizes"},
      {"collect.depth", count(profile.collect.depth), "", "components of a path copied out"},
      {"identity", std::to_string(profile.uid) + ":" + std::to_string(profile.gid), "", "uid and gid of the candidate"},
      {"filter_proof", to_text(profile.filter_proof), "", explain(profile.filter_proof)},
      {"rootfs_mount", to_text(profile.rootfs_mount), "", explain(profile.rootfs_mount)},
      {"egress_counters", names_of(profile.egress_counters), "", "counted by BPF programs; `sockets` also refuses"},
      {"user_namespace", to_text(profile.user_namespace), "", explain(profile.user_namespace)},
      {"exec", to_text(profile.exec), "", explain(profile.exec)},
      {"without_runtime", walls_of(profile), "", "in an engine that does not know benchsand's runtime"},
  };
  if (!profile.cpuset.empty())
    rows.push_back({"cpuset", profile.cpuset, "", "processors of the host that the run may use"});
  return rows;
}

std::string markdown_row(const Row& row, std::size_t columns) {
  std::string line = "|";
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (columns == 3 && i == 2) continue;  // fixed values have no maximum
    line += " " + row[i] + " |";
  }
  return line + "\n";
}

std::string markdown_section(const Profile& profile) {
  std::string text = "## Profile `" + profile.name + "`\n\n";
  text += "| limit | default | maximum | meaning |\n|---|---|---|---|\n";
  for (const Row& row : asked_rows(profile)) text += markdown_row(row, 4);
  text +=
      "\nFixed by the profile; a task cannot ask for another value:\n\n| bound | value | meaning |\n|---|---|---|\n";
  for (const Row& row : fixed_rows(profile)) text += markdown_row(row, 3);
  return text;
}

}  // namespace

std::string limits_table(const Profile& profile) {
  std::vector<Row> rows{{"limit", "default", "maximum", "meaning"}};
  for (Row& row : asked_rows(profile)) rows.push_back(std::move(row));
  for (Row& row : fixed_rows(profile)) rows.push_back(std::move(row));
  std::array<std::size_t, 3> widths{};
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < widths.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text = "Profile " + profile.name + "\n\n";
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < widths.size(); ++i) text += row[i] + std::string(widths[i] + 2 - row[i].size(), ' ');
    text += row.back() + "\n";
  }
  return text;
}

std::string limits_markdown(const std::vector<Profile>& profiles) {
  std::string text =
      "# Limits\n\n"
      "This page is the output of `benchsand limits --markdown`; a test fails when it differs.\n\n"
      "A task asks for limits under `limits:`, or `--set limits.NAME=VALUE` does for one run. "
      "Times take `us`, `ms`, `s`, `m` or `h` and are seconds without a unit; sizes take `B`, `KiB`, `MiB`, `GiB`, "
      "`KB`, "
      "`MB` or `GB` and are bytes without one; `cpus` takes up to three decimals.\n\n"
      "What is not asked for is the default. A bound that is zero, negative or not finite is the default too, and the "
      "record says so in `notices`. A bound over the maximum is an error, and nothing runs. `memory` must hold `disk` "
      "and "
      "`memory_headroom`, because the output file system is charged to the memory of the run.\n";
  for (const Profile& profile : profiles) {
    text += '\n';
    text += markdown_section(profile);
  }
  return text;
}

}  // namespace benchsand
