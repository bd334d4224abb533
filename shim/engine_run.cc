#include "shim/engine_run.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "oci/api_body.h"
#include "oci/engine_says.h"
#include "oci/record.h"
#include "shim/container_record.h"
#include "shim/container_state.h"
#include "shim/engine_container.h"
#include "shim/engine_empty_image.h"
#include "shim/engine_images.h"
#include "shim/engine_owner.h"
#include "shim/engine_plain.h"
#include "shim/engine_service.h"
#include "shim/front_desk.h"
#include "shim/record_store.h"
#include "shim/result_folder.h"
#include "shim/rootfs.h"
#include "shim/run_folder.h"

namespace benchsand {

using nlohmann::json;

namespace {

constexpr std::uint64_t kMonitorComesWithin = 5'000'000;  // after the engine says that the container has started
constexpr std::uint64_t kTeardownWithin = 120'000'000;    // of the monitor, beyond the wall time

const std::vector<int> kStops = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

class EngineRun {
 public:
  EngineRun(const EngineRunRequest& request, Documents documents, Policy policy)
      : request_(request), documents_(std::move(documents)), policy_(std::move(policy)) {}

  Result<void> prepare();
  Result<void> story();
  Result<void> remove();
  Result<EngineRunReport> report(const std::string& fault);

 private:
  Result<void> reach_engine();
  Result<void> choose_image();
  Result<void> unpack_image();
  Result<void> create();
  Result<void> start();
  Result<void> meet_monitor();
  Result<void> look_while_it_runs();
  void end_run(const char* why);
  Result<void> wait_for_monitor();
  Result<bool> hear_monitor();
  void hear_monitor_out();
  Result<void> hear_engine_out();
  FrontOrder order() const;
  Result<json> found_record();
  json record_of_nothing(const std::string& fault) const;
  Result<void> finish(const json& record);

  const EngineRunRequest& request_;
  Documents documents_;
  Policy policy_;
  HostFacts host_;
  std::string id_, created_;
  Fd signals_, note_;
  std::optional<ResultFolder> results_;
  std::optional<PodmanService> service_;
  std::optional<EngineClient> engine_;
  std::string runtime_, image_;     // image_: as the engine knows it
  std::optional<Rootfs> unpacked_;  // the task's image: nobody removes it meanwhile
  std::string asked_for_;           // the container's name, from when there may be one
  std::string container_;           // its id; empty: there is none, or it is not ours
  std::optional<FrontDesk> desk_;
  ControlConnection monitor_;
  std::string told_record_;  // the digest of the record that the monitor wrote
  EngineSays says_;
  std::vector<Failure> failures_;
  std::vector<std::string> notices_;
  bool heard_out_ = false;  // the engine's last word is known
};

// 2. Prepare. An error leaves nothing.
Result<void> EngineRun::prepare() {
  // Before signals are held back: a large image takes its time, and whoever interrupts it is not to wait.
  if (policy_.image && policy_.image->form != ImageForm::stored) TRY_VOID(unpack_image());
  signals_ = TRY(sys::signalfd(kStops));
  id_ = TRY(new_run_id());
  created_ = sys::utc_now();
  TRY_VOID(make_base_folders());
  TRY_VOID(make_root_directory(kOrderBase, 0700));
  results_ = TRY(ResultFolder::plan(request_.results, id_));
  TRY_VOID(reach_engine());
  engine_->http().stop_at(signals_);
  return choose_image();
}

// An empty one, over which the monitor mounts what the task says. The task's own image is unpacked, as for a direct run: what an
// engine made of it would have volumes and files of the engine's, and be its word.
Result<void> EngineRun::choose_image() {
  image_ = TRY(empty_image(*engine_));
  if (!policy_.image || policy_.image->form != ImageForm::stored) return {};
  const sys::SignalsLetThrough interruptible(kStops);  // there is nothing yet that gc does not take away
  policy_.image_digest = TRY(unpack_image_of(*engine_, *policy_.image));
  return unpack_image();
}

Result<void> EngineRun::unpack_image() {
  Policy noted = policy_;  // the monitor notes it for the record
  unpacked_ = TRY(open_task_rootfs(noted));
  policy_.image_digest = noted.image_digest;
  return {};
}

Result<void> EngineRun::reach_engine() {
  if (request_.engine == ApiKind::podman && std::getenv("CONTAINER_HOST") == nullptr) {
    runtime_ = TRY(our_runtime());
    service_.emplace(TRY(PodmanService::start(kOrderBase, id_, runtime_)));
    engine_ = TRY(EngineClient::connect(ApiKind::podman, service_->endpoint()));
    return {};
  }
  engine_ = TRY(EngineClient::connect(request_.engine));
  runtime_ = TRY(benchsand_runtime_of(*engine_));
  if (runtime_.empty())
    return fault("run on " + std::string(to_text(request_.engine)) + " at " + engine_->endpoint().text() +
                 ": it does not know the runtime benchsand (cure: " +
                 (request_.engine == ApiKind::docker
                      ? "benchsand install docker, and systemctl reload docker"
                      : "podman --runtime benchsand system service, after benchsand install podman") +
                 ")");
  return {};
}

// 3. The container, with the order for its monitor. After this there is something to take away.
Result<void> EngineRun::create() {
  BodyPlaces places;
  places.name = container_name(id_);
  places.image = image_;
  places.runtime = service_ ? "" : runtime_;
  places.labels = TRY(owner_labels(id_));
  note_ = TRY(note_results_of(id_, results_->partial_path()));
  asked_for_ = places.name;
  // An engine goes on with a call that was given up, and would have the container when nobody looks for it any more.
  engine_->http().stop_no_more();
  auto created = TRY(create_container(*engine_, places.name, create_body(engine_->kind(), policy_, places)));
  engine_->http().stop_at(signals_);
  for (auto& warning : created.warnings) notices_.push_back(std::string(to_text(request_.engine)) + ": " + warning);
  says_.created = TRY(inspect_container(*engine_, created.id));
  says_.asks_for_no_swap_limit = TRY(asks_for_no_swap_limit(*engine_, says_.created));
  TRY_VOID(require_run(engine_->kind(), created.id, says_.created, id_));
  container_ = std::move(created.id);
  desk_.emplace(TRY(FrontDesk::open(container_, order())));
  return {};
}

FrontOrder EngineRun::order() const {
  FrontOrder order;
  order.run_id = id_;
  order.engine = to_text(request_.engine);
  order.task_path = std::filesystem::canonical(request_.task.task_path).string();
  order.task_sha256 = documents_.source.sha256;
  order.profile = documents_.profile_text.request;
  order.profile_sha256 = documents_.profile_text.sha256;
  order.settings = request_.task.settings;
  order.results = results_->base();
  order.image = policy_.image_digest;
  return order;
}

// 4. Start. The engine's answer means that the monitor has opened the door, or that there is none.
Result<void> EngineRun::start() {
  auto met = [&]() -> Result<void> {
    TRY_VOID(start_container(*engine_, container_));
    return meet_monitor();
  }();
  if (met || desk_->is_order_taken()) return met;
  const std::string wrong = wrong_runtime(*engine_);
  if (!wrong.empty()) met.error().message = "start the container: " + wrong + "; " + met.error().message;
  return met;
}

// It has connected before the container existed.
Result<void> EngineRun::meet_monitor() {
  if (TRY(sys::poll_one(desk_->fd(), POLLIN, sys::monotonic_us() + kMonitorComesWithin)) == 0)
    return fault("start the container: " + std::string(to_text(request_.engine)) +
                 " says that it has started, and benchsand-runtime was not called for it" +
                 (engine_->endpoint().is_local() ? "" : " on this host; run benchsand on the engine's"));
  monitor_ = TRY(desk_->monitor());
  return {};
}

// The engine's word while there is something to compare it with.
Result<void> EngineRun::look_while_it_runs() {
  const json said = TRY(inspect_container(*engine_, container_));
  for (const auto& state : TRY(all_containers())) {
    if (state.id != container_ || state.run_id != id_) continue;
    for (auto& failure : pid_disagreement(engine_->kind(), said, static_cast<std::uint64_t>(state.pid)))
      failures_.push_back(std::move(failure));
  }
  return {};
}

// A monitor that does not hear this has ended. Without a reason it is for us to say one.
void EngineRun::end_run(const char* why) {
  static_cast<void>(monitor_.send({{"do", "delete"}, {"why", why}}));
}

// 6. The monitor watches. Its end is the run's end, whatever the engine says.
Result<void> EngineRun::wait_for_monitor() {
  const std::uint64_t deadline = sys::monotonic_us() + policy_.limits.wall_time_us + kTeardownWithin;
  for (bool told = false;;) {
    std::array<pollfd, 2> waits = {{{monitor_.fd().get(), POLLIN, 0}, {told ? -1 : signals_.get(), POLLIN, 0}}};
    const std::uint64_t now = sys::monotonic_us();
    const int n =
        now < deadline ? ::poll(waits.data(), waits.size(), static_cast<int>((deadline - now) / 1000 + 1)) : 0;
    if (n < 0 && errno != EINTR) return sys_error("poll", "the monitor", errno);
    if (n == 0) return fault("wait for the monitor of container " + container_ + ": it did not end in time");
    if (n > 0 && waits[1].revents != 0) {
      told = true;
      end_run("finish the run: benchsand was told to stop by a signal");
    }
    if (n <= 0 || waits[0].revents == 0) continue;
    if (!TRY(hear_monitor())) return {};
  }
}

// False: it has ended.
Result<bool> EngineRun::hear_monitor() {
  const json message = TRY(monitor_.receive(sys::monotonic_us()));
  if (message.contains("record") && message["record"].is_string()) told_record_ = message["record"];
  return !message.is_null();
}

// Of a run that ended before the front end had an ear for it: it has spoken before the engine was told that nothing starts.
void EngineRun::hear_monitor_out() {
  const auto has_news = [](const Fd& fd) {
    const auto ready = sys::poll_one(fd, POLLIN, sys::monotonic_us());
    return ready && *ready != 0;
  };
  if (!monitor_ && desk_ && has_news(desk_->fd()))
    if (auto monitor = desk_->monitor()) monitor_ = std::move(*monitor);
  while (monitor_ && has_news(monitor_.fd()))
    if (const auto heard = hear_monitor(); !heard || !*heard) return;
}

// What the engine says of the end, which it hears of after the monitor.
Result<void> EngineRun::hear_engine_out() {
  engine_->http().stop_no_more();
  says_.ended = TRY(inspect_ended_container(*engine_, container_));
  heard_out_ = true;
  return {};
}

Result<void> EngineRun::story() {
  TRY_VOID(create());
  TRY_VOID(start());
  const auto looked = look_while_it_runs();
  if (!looked) end_run("");  // an engine that does not answer ends the run
  TRY_VOID(wait_for_monitor());
  TRY_VOID(looked);
  return hear_engine_out();
}

// 9. Release: the order, then the container: by its name, because an answer with its id may not have come, or not be true. A
// monitor that still lives ends the run now.
Result<void> EngineRun::remove() {
  hear_monitor_out();
  monitor_ = ControlConnection();
  desk_.reset();
  if (asked_for_.empty()) return {};
  engine_->http().stop_no_more();
  auto removed = remove_container(*engine_, asked_for_);
  if (!removed) removed.error().message += "; benchsand gc removes it when the engine answers again";
  return removed;
}

// The monitor's, or what it left should it be dead, or what the runtime says of a container that it could not make.
Result<json> EngineRun::found_record() {
  const auto parsed = [](const std::string& path) -> Result<json> {
    const auto record = json::parse(TRY(sys::read_file(sys::kHere, path, 64 << 20)), nullptr, false);
    if (!digest_matches(record)) return fault("read " + path + ": it is not a record, or its digest does not match");
    return record;
  };
  if (!told_record_.empty()) {
    auto record = TRY(parsed(results_->partial_path() + "/record.json"));
    if (record["digest"] == told_record_) return record;
    return fault("read " + results_->partial_path() + "/record.json: it is not the record that the monitor wrote");
  }
  const auto found = TRY(TRY(RecordStore::open()).look_up(container_));
  auto record = TRY(parsed(found.path));
  // An engine may have given the id of a container that has a score already.
  if (record["verdict"]["scored"] == true) return fault("read " + found.path + ": it is the record of another run");
  return record;
}

json EngineRun::record_of_nothing(const std::string& fault) const {
  RunFacts facts;
  facts.id = id_;
  facts.created = created_;
  facts.container = ContainerFacts{container_, container_name(id_), "", "", to_text(request_.engine)};
  const End end{Cause::not_started, {}, {}, fault};
  return make_record(policy_, host_, facts, {}, Evidence(), end, judge({}, Evidence(), end, std::nullopt));
}

// 10. Judge, and write the record.
Result<EngineRunReport> EngineRun::report(const std::string& fault) {
  auto found = container_.empty() ? Result<json>(std::unexpected(Error{})) : found_record();
  json record = found ? std::move(*found) : record_of_nothing(fault.empty() ? found.error().message : fault);
  if (heard_out_)
    for (auto& failure : disagreements(engine_->kind(), container_, says_, record))
      failures_.push_back(std::move(failure));
  const bool scored = record["verdict"]["scored"] == true;
  // A monitor that was told to end the run does not know why.
  const bool unexplained = scored || (found && record["end"]["cause"] == to_text(Cause::killed));
  const std::string why = unexplained ? fault : "";
  if (!failures_.empty() || !why.empty()) record = unscored(std::move(record), failures_, why);
  record = with_notices(std::move(record), notices_);
  TRY_VOID(finish(record));
  return EngineRunReport{std::move(record), results_->path()};
}

Result<void> EngineRun::finish(const json& record) {
  if (TRY(sys::exists(sys::kHere, results_->partial_path() + "/record.json"))) {
    TRY_VOID(replace_record(results_->partial_path(), record));
  } else {
    TRY_VOID(sys::remove_tree(sys::kHere, results_->partial_path()));
    TRY_VOID(results_->write_unstarted(record));
  }
  TRY_VOID(results_->publish());
  if (!container_.empty()) TRY_VOID(keep_record(record, container_));
  note_.reset();
  return remove_note(id_);
}

}  // namespace

Result<EngineRunReport> run_on_engine(const EngineRunRequest& request) {
  if (::geteuid() != 0)
    return fault("start a run: benchsand must be root to order it from its runtime and to look at it; use sudo");
  auto documents = TRY(load_documents(request.task));
  const HostFacts host = host_facts(TRY(CgroupHost::find()).layout(), {to_text(request.engine), "", ""});
  auto policy = TRY(decide_policy(documents, host));
  if (TRY(is_without_shim(request))) return run_without_shim(request, host, std::move(policy));
  EngineRun run(request, std::move(documents), std::move(policy));
  TRY_VOID(run.prepare());
  const auto told = run.story();
  const auto removed = run.remove();
  return run.report(!told ? told.error().message : !removed ? removed.error().message : "");
}

}  // namespace benchsand
