#include "conformance/runsc_scene.h"

#include <fcntl.h>

#include <cerrno>

#include "conformance/runsc_bundle.h"
#include "oci/kernel_files.h"
#include "shim/output_fs.h"
#include "shim/run_folder.h"
#include "shim/task_bundle.h"

namespace benchsand::conformance {

using nlohmann::json;

namespace {

constexpr std::uint64_t kWholeScene = 300'000'000;
constexpr std::size_t kLongestTold = 16 << 20;
constexpr const char* kBoundMemory = "1073741824";  // of everything: runsc itself, and its container within

// Beside the keeper, which is the first process there and reaps nobody.
Result<std::size_t> living(const Fd& processes) {
  std::size_t count = 0;
  for (const auto& name : TRY(sys::list_directory(processes.get(), "."))) {
    if (name.find_first_not_of("0123456789") != std::string::npos || name == "1") continue;
    const auto text = sys::read_file(processes.get(), name + "/stat");
    if (!text && (text.error().error_number == ENOENT || text.error().error_number == ESRCH)) continue;
    if (!text) return std::unexpected(text.error());
    const char state = TRY(parse_process_stat(*text, name + "/stat")).state;
    count += state != 'Z' && state != 'X';
  }
  return count;
}

class RunscScene {
 public:
  RunscScene(const Host& host, const DelegateBinary& runsc, const Stage& stage, RunFolder folder)
      : host_(host), runsc_(runsc), stage_(stage), folder_(std::move(folder)) {}
  RunscScene(const RunscScene&) = delete;
  RunscScene& operator=(const RunscScene&) = delete;
  ~RunscScene();

  Result<void> prepare(const std::string& profile, const SceneOrder& order);
  Result<void> run();
  Result<void> see(const SceneOrder& order, SceneResult& scene);

 private:
  std::string path(const std::string& name = "") const { return stage_.path("runsc" + name); }

  const Host& host_;
  const DelegateBinary& runsc_;
  const Stage& stage_;
  RunFolder folder_;
  std::optional<RunCgroup> cgroup_;
  std::optional<OutputFs> output_;
  std::optional<Delegate> process_;
  std::optional<int> status_;
  std::uint64_t wall_us_ = 0;
  std::size_t left_ = 0;  // processes, when runsc had ended
};

// With its keeper everything ends that runsc has started.
RunscScene::~RunscScene() {
  if (process_ && process_->kill()) static_cast<void>(process_->wait_end());
  process_.reset();
  if (cgroup_) static_cast<void>(remove_run_cgroups(host_.cgroup, folder_.id()));
  static_cast<void>(sys::remove_tree(sys::kHere, path()));
  static_cast<void>(folder_.remove());
}

Result<void> RunscScene::prepare(const std::string& profile, const SceneOrder& order) {
  const TaskRequest task = TRY(scene_task(stage_, profile, order));
  output_ = TRY(OutputFs::create(TRY(load_policy(task, host_.facts))));
  TRY_VOID(sys::mkdirat(sys::kHere, path(), 0700));
  TRY(write_task_bundle(task, host_.facts, path("/bundle")));
  cgroup_ = TRY(RunCgroup::create(host_.cgroup, folder_.id()));
  const bool v2 = host_.cgroup.layout() == CgroupLayout::v2;
  TRY_VOID(cgroup_->try_limit("memory", v2 ? "memory.max" : "memory.limit_in_bytes", kBoundMemory));
  const std::string config = path("/bundle/config.json");
  const std::string changed = TRY(runsc_config(TRY(sys::read_file(sys::kHere, config)), cgroup_->leaf_path()));
  return sys::replace_file(config, changed, 0600);
}

Result<void> RunscScene::run() {
  DelegateStart start;
  start.arguments = {"--root", path("/state"), "--network=none", "run", "--bundle", path("/bundle"), folder_.id()};
  start.standard_input = TRY(sys::sealed_memory("empty", ""));  // runsc gives it to the container's user
  start.standard_output = TRY(sys::openat(sys::kHere, path("/stdout"), O_WRONLY | O_CREAT | O_EXCL, 0600));
  start.standard_error = TRY(sys::openat(sys::kHere, path("/stderr"), O_WRONLY | O_CREAT | O_EXCL, 0600));
  start.attachments = {{&output_->mount(), path("/bundle/output")}};
  const std::uint64_t began = sys::monotonic_us();
  process_ = TRY(Delegate::start(runsc_, std::move(start)));
  TRY_VOID(process_->executed());
  status_ = TRY(process_->wait(began + kWholeScene));
  wall_us_ = sys::monotonic_us() - began;
  left_ = TRY(living(TRY(process_->processes())));
  return {};
}

json observed(const json& value) {
  return {{"observed", value}};
}

Result<void> RunscScene::see(const SceneOrder& order, SceneResult& scene) {
  const std::string out = TRY(sys::read_file(sys::kHere, path("/stdout"), kLongestTold));
  const auto errors = TRY(sys::fstatat(sys::kHere, path("/stderr"), 0));
  read_told(out, order.verbs, scene);
  if (scene.told.empty() && status_ && *status_ != 0 && order.verbs.size() > 1)
    return fault("run the container: runsc ended with " + std::to_string(*status_) + " and the probe told nothing");
  json& record = scene.record;
  if (status_ == 0) record["end"]["cause"] = "exited";  // else nobody here knows why
  record["stdout"] = {{"kept", out.size()}, {"bytes", out.size()}};
  record["stderr"] = {{"kept", errors.st_size}, {"bytes", errors.st_size}};
  record["outputs"] = json::array();
  for (const auto& name : order.look_for)
    if (TRY(sys::exists(output_->mount().get(), name))) record["outputs"].push_back({{"path", name}});
  json& evidence = record["evidence"];
  evidence["spent"]["wall-time"]["used_us"] = observed(wall_us_);
  Evidence spent;
  output_->observe_spent(spent);
  for (const char* key : {"bytes_used", "inodes_used"})
    if (const Observation* seen = spent.find(std::string("output.") + key); seen != nullptr && seen->value() != nullptr)
      evidence["spent"]["output"][key] = observed(std::get<std::uint64_t>(*seen->value()));
  evidence["after"]["teardown"]["processes_left"] = observed(left_);
  evidence["after"]["teardown"]["populated"] = observed(left_ == 0 ? 0 : 1);
  return {};
}

Result<void> play(const Host& host, const DelegateBinary& runsc, const Stage& stage, const std::string& profile,
                  const SceneOrder& order, SceneResult& scene) {
  std::optional<OpenWatch> watch;
  if (order.watch) watch.emplace(TRY(OpenWatch::on(stage.planted())));
  RunscScene one(host, runsc, stage, TRY(RunFolder::create()));
  TRY_VOID(one.prepare(profile, order));
  TRY_VOID(one.run());
  TRY_VOID(one.see(order, scene));
  if (watch) scene.opened = TRY(watch->opened());
  return {};
}

}  // namespace

SceneResult run_runsc_scene(const Host& host, const DelegateBinary& runsc, const Stage& stage,
                            const std::string& profile, const SceneOrder& order) {
  SceneResult scene;
  scene.own_kernel = true;
  if (const auto played = play(host, runsc, stage, profile, order, scene); !played)
    scene.fault = played.error().message;
  return scene;
}

}  // namespace benchsand::conformance
