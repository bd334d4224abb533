#include "conformance/suite.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>

#include "conformance/case.h"
#include "conformance/default_scene.h"
#include "conformance/judge_defaults.h"
#include "conformance/runsc_scene.h"
#include "conformance/scene.h"
#include "oci/json_path.h"
#include "shim/engine_commands.h"
#include "shim/run_folder.h"

namespace benchsand::conformance {

namespace {

constexpr const char* kPlanted = "{planted}";
constexpr std::string_view kOutputs = "outputs/";
constexpr const char* kControlProfile = "strict";  // of the controls, where what is attempted has no profile
constexpr const char* kLongDeadline = "120000";    // of who is to be ended by the host
constexpr const char* kProgramDeadline = "60000";

std::string group_of(const Case& one) {
  return one.id.substr(0, one.id.find('.'));
}

bool is_asked(const Case& one, const std::string& word) {
  return (word == "ten" && one.check != 0) || word == one.id || word == one.wall || word == group_of(one);
}

// As it calls itself, wherever it was found.
Result<std::string> name_of_profile(const SuiteRequest& request) {
  if (request.profile == kEngineDefaults) return request.profile;
  const ProfileText text = TRY(find_profile(request.profile));
  return TRY(parse_profile(text.text, text.name)).name;
}

// A container of an engine's, or of gVisor's, is never without a wall, so what stands behind one cannot be seen there.
Result<void> leave_to_delegates(const SuiteRequest& request, std::vector<Case>& list) {
  for (const auto& word : request.only)
    for (const Case& one : list)
      if (!one.behind.empty() && (word == one.id || word == group_of(one)))
        return usage("--only " + word + ": what stands behind another wall is attempted with crun and runc alone");
  std::erase_if(list, [](const Case& one) { return !one.behind.empty(); });
  return {};
}

Result<std::vector<Case>> asked_cases(const SuiteRequest& request, std::string& sha256) {
  Cases all = TRY(builtin_cases());
  const std::string profile = TRY(name_of_profile(request));
  for (Case& one : all.list) one = for_profile(std::move(one), profile);
  sha256 = all.sha256;
  const auto needs_programs = [](const Case& one) { return !one.program.empty(); };
  for (const auto& word : request.only)
    if (request.programs.empty() && std::any_of(all.list.begin(), all.list.end(), [&](const Case& one) {
          return needs_programs(one) && (word == one.id || word == group_of(one));
        }))
      return usage("--only " + word +
                   ": ordinary programs are attempted with --programs ROOTFS (see docs/conformance.md)");
  if (request.programs.empty()) std::erase_if(all.list, needs_programs);
  if (request.api || request.engine == kRunsc) TRY_VOID(leave_to_delegates(request, all.list));
  if (request.only.empty()) return all.list;
  std::vector<Case> list;
  for (const auto& word : request.only)
    if (std::none_of(all.list.begin(), all.list.end(), [&](const Case& one) { return is_asked(one, word); }))
      return usage("--only " + word +
                   ": no case, wall or group of cases is called so (see benchsand conformance --list)");
  for (const Case& one : all.list)
    if (std::any_of(request.only.begin(), request.only.end(),
                    [&](const std::string& word) { return is_asked(one, word); }))
      list.push_back(one);
  return list;
}

class Suite {
 public:
  Suite(const SuiteRequest& request, Host host, Stage stage, std::vector<Case> cases)
      : request_(request), host_(std::move(host)), stage_(std::move(stage)), cases_(std::move(cases)) {}
  // Whole is, from now on, what the engine makes by itself.
  Result<void> take_defaults() {
    defaults_.emplace(TRY(DefaultScenes::make(*request_.api, stage_)));
    delegate_ = defaults_->delegate();
    return {};
  }

  std::vector<CaseResult> run();
  // The engine's own runtime makes what is whole, and benchsand observes it as far as it can be.
  Result<void> go_without_shim() {
    const auto* engines = engine_commands();
    if (engines == nullptr) return fault("call " + request_.engine + ": this program has no engines");
    host_.facts.delegate_name = TRY(engines->runtime_without_shim(*request_.api));
    delegate_ = {{"name", host_.facts.delegate_name}};
    return {};
  }
  Result<void> take_runsc() {
    runsc_ = TRY(find_delegate(kRunsc, kDelegateCache));
    delegate_ = {{"name", runsc_->facts.name}, {"version", runsc_->facts.version}, {"sha256", runsc_->facts.sha256}};
    return {};
  }
  // Who made the containers: of an engine, what its records say.
  const nlohmann::json& delegate() const { return delegate_; }
  const char* suffix() const {
    if (runsc_) return kWithoutDoor;
    return defaults_ ? kWithoutBenchsand : request_.no_shim ? kWithoutRuntime : "";
  }
  const Host& host() const { return host_; }
  const Stage& stage() const { return stage_; }

 private:
  bool is_not_benchsand() const { return defaults_ || runsc_; }
  void plan();
  SceneResult play_whole(SceneOrder order);
  SceneResult play(SceneOrder order);
  SceneResult not_played() const;
  void tell_progress(const SceneOrder& order);
  void judge_together();
  void judge_alone(const Case& one);
  CaseResult judged(const Case& one, const SceneResult& whole, const SceneResult* control,
                    const std::map<std::string, std::string>& ledger) const;

  const SuiteRequest& request_;
  Host host_;
  Stage stage_;
  std::optional<DefaultScenes> defaults_;
  std::optional<DelegateBinary> runsc_;
  std::vector<Case> cases_;
  std::vector<const Case*> together_;
  std::map<std::vector<Relaxation>, std::vector<const Case*>> controls_;
  std::size_t scenes_ = 0, played_ = 0;
  std::string no_sandbox_;  // why not even the first could be made: the others are not tried then
  std::map<std::string, CaseResult> results_;
  nlohmann::json delegate_ = nlohmann::json::object();  // empty: there was no container
};

void Suite::plan() {
  for (Case& one : cases_) {
    if (const auto at = one.verb.find(kPlanted); at != std::string::npos)
      one.verb.replace(at, std::string(kPlanted).size(), stage_.planted());
    if (one.alone) {
      scenes_ += one.limit ? 1 : 2;
      continue;
    }
    together_.push_back(&one);
    if (!one.limit) controls_[one.control.down].push_back(&one);
  }
  scenes_ += controls_.size() + !together_.empty();
}

// Whole, by the engine. A control is made by the delegate alone, for an engine's container is never without a wall.
SceneResult Suite::play_whole(SceneOrder order) {
  if (!no_sandbox_.empty()) return not_played();
  if (defaults_) {
    tell_progress(order);
    return defaults_->play(order);
  }
  if (runsc_) {
    tell_progress(order);
    return run_runsc_scene(host_, *runsc_, stage_, request_.profile, order);
  }
  order.engine = request_.api;
  order.without_shim = request_.no_shim;
  SceneResult scene = play(std::move(order));
  const auto& delegate = json_at(scene.record, "/engine/delegate");
  if (delegate.is_object() && !request_.no_shim) {
    delegate_ = delegate;
    host_.facts.delegate_name = delegate.value("name", "");
  }
  return scene;
}

void Suite::tell_progress(const SceneOrder& order) {
  ++played_;
  if (request_.progress)
    request_.progress("sandbox " + std::to_string(played_) + " of " + std::to_string(scenes_) + ": " +
                      std::to_string(order.verbs.size()) + " attempts");
}

SceneResult Suite::not_played() const {
  SceneResult scene;
  scene.fault = no_sandbox_;
  return scene;
}

SceneResult Suite::play(SceneOrder order) {
  if (!no_sandbox_.empty()) return not_played();
  tell_progress(order);
  return run_scene(host_, stage_, defaults_ ? kControlProfile : request_.profile, order);
}

CaseResult Suite::judged(const Case& one, const SceneResult& whole, const SceneResult* control,
                         const std::map<std::string, std::string>& ledger) const {
  return is_not_benchsand() ? judge_default_case(one, host_.facts, whole, control)
                            : judge_case(one, host_.facts, whole, control, ledger);
}

void add_new(const std::vector<std::string>& more, std::vector<std::string>& verbs) {
  for (const auto& verb : more)
    if (std::find(verbs.begin(), verbs.end(), verb) == verbs.end()) verbs.push_back(verb);
}

std::vector<std::string> control_verbs(const Case& one) {
  return one.control.verbs.empty() ? std::vector{one.verb} : one.control.verbs;
}

void Suite::judge_together() {
  if (together_.empty()) return;
  std::vector<std::string> verbs;
  for (const Case* one : together_) add_new({one->verb}, verbs);
  const SceneResult whole = play_whole({verbs, {}, room_for_many()});
  no_sandbox_ = whole.fault;
  const auto ledger = ledger_differences(together_, whole, host_.facts);
  for (const auto& [down, cases] : controls_) {
    verbs.clear();
    for (const Case* one : cases) add_new(control_verbs(*one), verbs);
    const SceneResult control = play({verbs, down, room_for_many()});
    for (const Case* one : cases) results_[one->id] = judged(*one, whole, &control, ledger);
  }
  for (const Case* one : together_)
    if (one->limit) results_[one->id] = judged(*one, whole, nullptr, ledger);
}

void Suite::judge_alone(const Case& one) {
  SceneOrder order{{one.verb}, {}, one.limits, one.planted};
  order.deadline_ms = kLongDeadline;
  for (const HostFact& fact : one.host)
    if (fact.place.starts_with(kOutputs)) order.look_for.push_back(fact.place.substr(kOutputs.size()));
  if (!one.program.empty()) {
    order.programs = request_.programs;
    order.deadline_ms = kProgramDeadline;
    order.limits = room_for_many();
  }
  order.down = one.behind;
  const SceneResult whole = play_whole(order);
  std::optional<SceneResult> control;
  if (!one.limit) {
    order.verbs = control_verbs(one);
    order.down = one.control.down;
    if (one.program.empty()) order.limits = one.control.limits;
    order.grant = one.control.grant;
    const auto place = order.grant ? stage_.make_place_for_planted() : Result<void>();
    if (place) {
      control = play(std::move(order));
    } else {
      control.emplace();
      control->fault = place.error().message;
    }
  }
  const auto ledger = ledger_differences({&one}, whole, host_.facts);
  results_[one.id] = judged(one, whole, control ? &*control : nullptr, ledger);
}

std::vector<CaseResult> Suite::run() {
  plan();
  judge_together();
  for (const Case& one : cases_)
    if (one.alone) judge_alone(one);
  std::vector<CaseResult> list;
  for (const Case& one : cases_) list.push_back(std::move(results_.at(one.id)));
  return list;
}

Result<SuiteAbout> about(const SuiteRequest& request, const Suite& suite, const std::string& cases_sha256) {
  const Host& host = suite.host();
  SuiteAbout about;
  about.version = BENCHSAND_VERSION;
  about.created = sys::utc_now();
  about.engine = request.engine + suite.suffix();
  about.delegate = suite.delegate().value("name", "");
  about.delegate_version = suite.delegate().value("version", "");
  about.delegate_sha256 = suite.delegate().value("sha256", "");
  about.kernel = host.facts.kernel;
  about.cgroup = to_text(host.facts.cgroup);
  about.profile = request.profile;
  if (request.profile != kEngineDefaults) about.profile_sha256 = TRY(find_profile(request.profile)).sha256;
  about.probe_sha256 = suite.stage().probe_sha256();
  about.cases_sha256 = cases_sha256;
  return about;
}

// The task that names it is written into another folder.
Result<SuiteRequest> with_real_programs(SuiteRequest request) {
  if (request.programs.empty()) return request;
  std::error_code failed;
  const std::string real = std::filesystem::canonical(request.programs, failed).string();
  if (failed) return usage("--programs " + request.programs + ": " + failed.message());
  request.programs = real;
  return request;
}

}  // namespace

Result<SuiteReport> run_suite(const SuiteRequest& asked) {
  const std::uint64_t started = sys::monotonic_us();
  const SuiteRequest request = TRY(with_real_programs(asked));
  std::string cases_sha256;
  auto cases = TRY(asked_cases(request, cases_sha256));
  Host host = TRY(require_host(request.api || request.engine == kRunsc ? "crun" : request.engine));
  Suite suite(request, std::move(host), TRY(Stage::make()), std::move(cases));
  if (request.profile == kEngineDefaults)
    TRY_VOID(suite.take_defaults());
  else if (request.engine == kRunsc)
    TRY_VOID(suite.take_runsc());
  else if (request.no_shim)
    TRY_VOID(suite.go_without_shim());
  SuiteReport report;
  report.cases = suite.run();
  report.lacks_programs =
      request.programs.empty() && request.only.empty() && !request.no_shim && request.engine != kRunsc;
  report.about = TRY(about(request, suite, cases_sha256));
  report.about.duration_us = sys::monotonic_us() - started;
  return report;
}

Result<std::string> list_cases(const SuiteRequest& request) {
  std::string sha256, text;
  for (const Case& one : TRY(asked_cases(request, sha256)))
    text += one.id + std::string(one.id.size() < 44 ? 44 - one.id.size() : 1, ' ') +
            (one.check != 0 ? "check " + std::to_string(one.check) + ": " : "") + one.attempt + "\n";
  return text;
}

}  // namespace benchsand::conformance
