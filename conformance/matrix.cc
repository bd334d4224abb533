#include "conformance/matrix.h"

#include <algorithm>
#include <map>
#include <set>

#include "conformance/scene.h"
#include "conformance/suite.h"

namespace benchsand::conformance {

namespace {

constexpr std::size_t kShown = 4;

// Behind a wall that still stands another one cannot be seen to fall, and some cannot fall alone.
struct Row {
  Relaxation wall;
  std::vector<Relaxation> without;
};
const std::vector<Row>& rows() {
  using enum Relaxation;
  static const std::vector<Row> all = {
      {seccomp, {}},
      {seccomp_network, {}},
      {bpf_deny, {seccomp_network}},
      {network_namespace, {seccomp, bpf_deny, user_namespace}},
      {masks, {}},
      {rootfs, {}},
      {devices, {}},
      {identity, {seccomp}},
      {user_namespace, {seccomp, identity}},
      {no_new_privs, {seccomp, user_namespace}},
      {pid_namespace, {user_namespace}},
  };
  return all;
}

std::vector<Case> cases_together() {
  std::vector<Case> list;
  if (auto all = builtin_cases())
    for (Case& one : all->list)
      if (!one.alone && !one.limit) list.push_back(std::move(one));
  return list;
}

Result<SceneResult> attempts(const Host& host, const Stage& stage, const SuiteRequest& request,
                             const std::vector<Case>& cases, const std::vector<Relaxation>& down) {
  SceneOrder order;
  for (const Case& one : cases) order.verbs.push_back(one.verb);
  order.down = down;
  order.limits = room_for_many();
  auto scene = run_scene(host, stage, request.profile, order);
  if (!scene.fault.empty()) return fault("attempt all without a wall: " + scene.fault);
  if (!scene.whole) return fault("attempt all without a wall: the probe did not come to its end");
  return scene;
}

std::string names(const std::vector<Relaxation>& down) {
  std::string text;
  for (const Relaxation wall : down) text += (text.empty() ? "" : ", ") + std::string(to_text(wall));
  return text.empty() ? "-" : text;
}

// How many, which of the ten, and some of them: the last three columns.
std::string noticed_by(const std::vector<const Case*>& noticed) {
  std::set<unsigned> checks;
  std::string examples, ten;
  for (std::size_t i = 0; i < noticed.size(); ++i) {
    if (i < kShown) examples += (i == 0 ? "" : ", ") + noticed[i]->id;
    if (noticed[i]->check != 0) checks.insert(noticed[i]->check);
  }
  for (const unsigned check : checks) ten += (ten.empty() ? "" : ", ") + std::to_string(check);
  return std::to_string(noticed.size()) + " | " + (ten.empty() ? "-" : ten) + " | " + examples + " |\n";
}

// The limit that a case is about: its control has that one higher, and beside it those which would come first.
std::map<std::string, std::vector<const Case*>> cases_by_limit(const std::vector<Case>& all) {
  std::map<std::string, std::vector<const Case*>> cases;
  for (const Case& one : all)
    if (one.control.down.empty() && !one.control.limits.empty()) cases[one.wall].push_back(&one);
  return cases;
}

// Each with the limit, and with a higher one, in which what was refused must be done.
Result<std::string> limits_table(const SuiteRequest& request) {
  const Cases all = TRY(builtin_cases());
  const auto by_limit = cases_by_limit(all.list);
  SuiteRequest limits = request;
  limits.only.clear();
  for (const auto& [wall, cases] : by_limit)
    for (const Case* one : cases) limits.only.push_back(one->id);
  const SuiteReport report = TRY(run_suite(limits));
  std::string table;
  for (const auto& [wall, cases] : by_limit) {
    for (const Case* one : cases)
      for (const CaseResult& result : report.cases)
        if (result.id == one->id && result.verdict != CaseVerdict::refused)
          return fault("raise the limit " + wall + ": " + one->id + " does not notice it: " + result.reason);
    table += "| " + wall + " | " + noticed_by(cases);
  }
  return table;
}

}  // namespace

Result<std::string> run_matrix(const SuiteRequest& request) {
  const auto cases = cases_together();
  const Host host = TRY(require_host(request.engine));
  const Stage stage = TRY(Stage::make());
  std::string page =
      "# Walls taken down in turn\n\nWhat `benchsand conformance --matrix` saw on one host: a wall is taken down in a "
      "sandbox that is whole but for the walls of the second\n"
      "column, and so many attempts come to another end.\n\n"
      "| wall taken down | beside | attempts that notice | of the ten | for example |\n|---|---|---|---|---|\n";
  for (const Row& row : rows()) {
    if (request.progress) request.progress(std::string("without ") + to_text(row.wall));
    auto down = row.without;
    const auto before = TRY(attempts(host, stage, request, cases, down));
    down.push_back(row.wall);
    const auto now = TRY(attempts(host, stage, request, cases, down));
    std::vector<const Case*> noticed;
    for (const Case& one : cases)
      if (before.told.at(one.verb).outcome != now.told.at(one.verb).outcome) noticed.push_back(&one);
    if (noticed.empty())
      return fault(std::string("take down the wall ") + to_text(row.wall) + ": no attempt notices that it is gone");
    page += std::string("| ") + to_text(row.wall) + " | " + names(row.without) + " | " + noticed_by(noticed);
  }
  page +=
      "\n## Limits raised in turn\n\n| limit raised | attempts that notice | of the ten | for example "
      "|\n|---|---|---|---|\n";
  return page + TRY(limits_table(request));
}

}  // namespace benchsand::conformance
