#include "shim/engine_plain.h"

#include <cstdlib>
#include <optional>

#include "oci/engine_says.h"
#include "oci/without_runtime.h"
#include "shim/engine_container.h"
#include "shim/engine_images.h"
#include "shim/engine_owner.h"
#include "shim/engine_service.h"
#include "shim/front_desk.h"
#include "shim/plain_run.h"
#include "shim/result_folder.h"
#include "shim/run_folder.h"

namespace benchsand {

using nlohmann::json;

namespace {

const json& at(const json& document, std::initializer_list<const char*> keys) {
  static const json absent;
  const json* found = &document;
  for (const char* key : keys) {
    const auto next = found->is_object() ? found->find(key) : found->end();
    if (next == found->end()) return absent;
    found = &*next;
  }
  return *found;
}

}  // namespace

// Where benchsand is the engine's default, the run is to have another.
Result<std::string> runtime_beside_ours(EngineClient& engine) {
  if (engine.kind() == ApiKind::podman) {
    const std::string own = TRY(benchsand_runtime_of(engine));
    if (own.empty()) return own;
    return fault("run without benchsand's runtime: it is the runtime of the podman service at " +
                 engine.endpoint().text() + "; unset CONTAINER_HOST, or point it at another service");
  }
  const auto answer = TRY(engine.call({"GET", "/info", "ask for the runtimes", nullptr, {200}}));
  const json &standard = at(answer.body, {"DefaultRuntime"}), &known = at(answer.body, {"Runtimes"});
  if (!standard.is_string() || !standard.get<std::string>().starts_with("benchsand")) return std::string();
  for (const char* runtime : {"runc", "crun"})
    if (known.is_object() && known.contains(runtime)) return std::string(runtime);
  return fault("run without benchsand's runtime: docker's default is " + standard.get<std::string>() +
               ", and it knows neither runc nor crun");
}

namespace {

class ContainerOverApi : public PlainContainer {
 public:
  ContainerOverApi(EngineClient& engine, std::string image) : engine_(engine), image_(std::move(image)) {}

  Result<void> create(const std::string& run_id, const Policy& policy, const BodyPlaces::Plain& places) override;
  std::string cgroup() const override;
  Result<void> start(const Fd& stop) override;
  Result<EngineWords> words() override;
  Result<void> remove() override;
  json compared(json record) override;

 private:
  Result<void> hear_out();

  EngineClient& engine_;
  std::string image_;
  std::string asked_for_;  // the container's name, from when there may be one
  std::string container_;  // its id; empty: there is none, or it is not ours
  EngineSays says_;
  std::vector<std::string> notices_;
  bool heard_out_ = false;
};

Result<void> ContainerOverApi::create(const std::string& run_id, const Policy& policy,
                                      const BodyPlaces::Plain& places) {
  BodyPlaces all;
  all.name = container_name(run_id);
  all.image = image_;
  all.runtime = TRY(runtime_beside_ours(engine_));
  all.labels = TRY(owner_labels(run_id));
  all.plain = places;
  asked_for_ = all.name;
  auto created = TRY(create_container(engine_, all.name, create_body(engine_.kind(), policy, all)));
  for (const auto& warning : created.warnings)
    notices_.push_back(std::string(to_text(engine_.kind())) + ": " + warning);
  says_.created = TRY(inspect_container(engine_, created.id));
  TRY_VOID(require_run(engine_.kind(), created.id, says_.created, run_id));
  container_ = std::move(created.id);
  return {};
}

// Both name it so where they manage cgroups as directories.
std::string ContainerOverApi::cgroup() const {
  return (engine_.kind() == ApiKind::podman ? "libpod-" : "") + container_;
}

Result<void> ContainerOverApi::start(const Fd& stop) {
  engine_.http().stop_at(stop);
  return start_container(engine_, container_);
}

Result<EngineWords> ContainerOverApi::words() {
  const json said = TRY(inspect_container(engine_, container_));
  const json &pid = at(said, {"State", "Pid"}), &parent = at(said, {"HostConfig", "CgroupParent"});
  if (!pid.is_number_unsigned() || !parent.is_string())
    return fault("look at the container: " + std::string(to_text(engine_.kind())) +
                 " does not say its process number and its cgroup");
  return EngineWords{pid.get<std::uint64_t>(), parent.get<std::string>()};
}

Result<void> ContainerOverApi::hear_out() {
  says_.ended = TRY(inspect_ended_container(engine_, container_));
  heard_out_ = true;
  return {};
}

Result<void> ContainerOverApi::remove() {
  if (asked_for_.empty()) return {};
  engine_.http().stop_no_more();
  // It is dead already, unless the engine has put it elsewhere.
  if (!container_.empty()) static_cast<void>(kill_container(engine_, container_));
  const auto heard = container_.empty() ? Result<void>() : hear_out();
  auto removed = remove_container(engine_, asked_for_);  // its id may not have come, or be another's
  if (!removed) removed.error().message += "; benchsand gc removes it when the engine answers again";
  TRY_VOID(removed);
  return heard;
}

json ContainerOverApi::compared(json record) {
  auto failures = heard_out_ ? disagreements(engine_.kind(), container_, says_, record) : std::vector<Failure>();
  if (!failures.empty()) record = unscored(std::move(record), std::move(failures), "");
  return with_notices(std::move(record), notices_);
}

bool has_service_of_ours(const EngineRunRequest& request) {
  return request.engine == ApiKind::podman && std::getenv("CONTAINER_HOST") == nullptr;
}

}  // namespace

Result<std::string> runtime_of_the_host() {
  if (auto crun = find_delegate_path("crun")) return crun;
  return find_delegate_path("runc");
}

Result<std::string> runtime_without_shim(EngineClient& engine) {
  std::string name = TRY(runtime_beside_ours(engine));
  if (!name.empty()) return name;
  const auto info = TRY(engine.call({"GET", "/info", "ask for the runtimes", nullptr, {200}}));
  const bool docker = engine.kind() == ApiKind::docker;
  const json& standard = docker ? at(info.body, {"DefaultRuntime"}) : at(info.body, {"host", "ociRuntime", "name"});
  if (standard.is_string()) name = standard.get<std::string>();
  return name.substr(name.rfind('/') + 1);  // npos + 1 is 0
}

Result<std::string> runtime_without_shim(ApiKind kind) {
  if (kind == ApiKind::podman && std::getenv("CONTAINER_HOST") == nullptr) {
    const std::string path = TRY(runtime_of_the_host());
    return path.substr(path.rfind('/') + 1);
  }
  auto engine = TRY(EngineClient::connect(kind));
  return runtime_without_shim(engine);
}

Result<bool> is_without_shim(const EngineRunRequest& request) {
  if (request.without_shim) return true;
  if (has_service_of_ours(request)) return false;
  auto engine = TRY(EngineClient::connect(request.engine));
  return TRY(benchsand_runtime_of(engine)).empty();
}

namespace {

// Nothing is made in the engine for a run that cannot have a score.
Result<EngineRunReport> report_refused(const EngineRunRequest& request, const HostFacts& host, const Policy& policy,
                                       Failure failure) {
  TRY_VOID(make_base_folders());
  RunFacts facts;
  facts.id = TRY(new_run_id());
  facts.created = sys::utc_now();
  facts.delegate.name = to_text(request.engine);
  auto results = TRY(ResultFolder::plan(request.results, facts.id));
  const Fd note = TRY(note_results_of(facts.id, results.partial_path()));
  Verdict verdict;
  verdict.outcome = Outcome::refused;
  verdict.failures = {std::move(failure)};
  EngineRunReport report{make_record(policy, host, facts, {}, Evidence(), End(), verdict), results.path()};
  TRY_VOID(results.write_unstarted(report.record));
  TRY_VOID(results.publish());
  TRY_VOID(remove_note(facts.id));
  return report;
}

}  // namespace

Result<EngineRunReport> run_without_shim(const EngineRunRequest& request, const HostFacts& host, Policy policy) {
  const std::string where =
      to_text(request.engine) +
      (has_service_of_ours(request) ? std::string() : " at " + TRY(find_endpoint(request.engine)).text());
  const auto why = why_without(request.engine, request.without_shim);
  if (auto certain = refused_beforehand(policy, why, where))
    return report_refused(request, host, policy, std::move(*certain));
  std::optional<PodmanService> service;
  if (has_service_of_ours(request)) {
    TRY_VOID(make_base_folders());
    TRY_VOID(make_root_directory(kOrderBase, 0700));
    service.emplace(TRY(PodmanService::start(kOrderBase, TRY(new_run_id()), TRY(runtime_of_the_host()))));
  }
  auto engine = service ? TRY(EngineClient::connect(ApiKind::podman, service->endpoint()))
                        : TRY(EngineClient::connect(request.engine));
  if (!engine.endpoint().is_local())
    return fault(
        "run on " + std::string(to_text(request.engine)) + " at " + engine.endpoint().text() +
        " without benchsand's runtime: its containers cannot be looked at from here; run benchsand on that host");
  const std::string image = TRY(image_in_engine(engine, policy));
  policy.notices.push_back(std::string(to_text(request.engine)) +
                           (request.without_shim ? " is used without benchsand's runtime"
                                                 : " does not know benchsand's runtime (cure: benchsand install)") +
                           ": what only the runtime can observe is missing");
  take_plain(policy);
  ContainerOverApi container(engine, image);
  const DelegateFacts facts{to_text(engine.kind()), engine.version(), ""};
  auto report = TRY(run_plain(facts, std::move(policy), request.results, container));
  return EngineRunReport{std::move(report.record), std::move(report.results)};
}

}  // namespace benchsand
