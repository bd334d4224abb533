#include "shim/engine_defaults.h"

#include <cstdlib>

#include "oci/default_body.h"
#include "oci/json_path.h"
#include "oci/stream_frames.h"
#include "shim/engine_container.h"
#include "shim/engine_images.h"
#include "shim/engine_owner.h"
#include "shim/engine_plain.h"
#include "shim/engine_service.h"
#include "shim/front_desk.h"
#include "shim/run_folder.h"

namespace benchsand {

using nlohmann::json;

namespace {

constexpr std::size_t kLongestOutput = 16 << 20;

class DefaultEngineOverApi : public DefaultEngine {
 public:
  DefaultEngineOverApi(std::optional<PodmanService> service, EngineClient engine)
      : service_(std::move(service)), engine_(std::move(engine)) {}
  ~DefaultEngineOverApi() override;
  Result<void> learn();
  Result<void> import(const std::string& rootfs);

  std::string version() const override { return engine_.version(); }
  std::string runtime() const override { return runtime_name_; }
  bool takes_parent() const override { return takes_parent_; }
  // Both name it so where they manage cgroups as directories.
  std::string leaf(const std::string& id) const override {
    return (engine_.kind() == ApiKind::podman ? "libpod-" : "") + id;
  }
  Result<std::string> start(const Start& start) override;
  Result<pid_t> init(const std::string& id) override;
  Result<bool> wait(const std::string& id, std::uint64_t within_us) override;
  Result<DefaultEnd> end(const std::string& id, const std::vector<std::string>& look_for) override;
  Result<void> remove(const std::string& run_id) override;

 private:
  Result<std::uint64_t> read_log(const std::string& id, const char* which, std::string* text);
  Result<bool> has_file(const std::string& id, const std::string& path);
  static std::string place(const std::string& id, const std::string& what) {
    return "/containers/" + url_encoded(id) + what;
  }

  std::optional<PodmanService> service_;
  EngineClient engine_;
  std::string image_, runtime_, runtime_name_;
  bool takes_parent_ = false;
};

DefaultEngineOverApi::~DefaultEngineOverApi() {
  // What stays is listed by `benchsand image ls --engine`.
  if (!image_.empty())
    static_cast<void>(engine_.call({"DELETE", "/images/" + url_encoded(image_), "remove the image", nullptr, {200}}));
}

Result<void> DefaultEngineOverApi::learn() {
  const auto info = TRY(engine_.call({"GET", "/info", "ask who manages cgroups", nullptr, {200}}));
  const bool docker = engine_.kind() == ApiKind::docker;
  const json& driver = json_at(info.body, docker ? "/CgroupDriver" : "/host/cgroupManager");
  takes_parent_ = driver == "cgroupfs";  // systemd takes slices alone
  runtime_ = TRY(runtime_beside_ours(engine_));
  runtime_name_ = TRY(runtime_without_shim(engine_));
  return {};
}

Result<void> DefaultEngineOverApi::import(const std::string& rootfs) {
  Policy policy;
  policy.rootfs = rootfs;
  image_ = TRY(image_in_engine(engine_, policy));
  return {};
}

Result<std::string> DefaultEngineOverApi::start(const Start& start) {
  DefaultBody body;
  body.name = container_name(start.run_id);
  body.image = image_;
  body.runtime = runtime_;
  body.command = start.command;
  body.labels = TRY(owner_labels(start.run_id));
  body.cgroup_parent = start.cgroup_parent;
  body.alone = start.alone;
  body.joins = start.joins;
  auto created = TRY(create_container(engine_, body.name, default_body(engine_.kind(), body)));
  TRY_VOID(require_run(engine_.kind(), created.id, TRY(inspect_container(engine_, created.id)), start.run_id));
  TRY_VOID(start_container(engine_, created.id));
  return std::move(created.id);
}

Result<pid_t> DefaultEngineOverApi::init(const std::string& id) {
  const json said = TRY(inspect_container(engine_, id));
  const json& pid = json_at(said, "/State/Pid");
  if (!pid.is_number_unsigned() || pid == 0) return fault("look at the container: its engine names no process of it");
  return pid.get<pid_t>();
}

Result<bool> DefaultEngineOverApi::wait(const std::string& id, std::uint64_t within_us) {
  HttpRequest request{.method = "POST", .target = engine_.target(place(id, "/wait")), .body = {}};
  request.within_us = within_us;
  const auto answer = engine_.http().call(request);
  if (answer && answer->status != 200) return engine_.refused("wait for the end of the container", *answer);
  if (answer) return true;
  TRY_VOID(kill_container(engine_, id));
  return false;
}

Result<std::uint64_t> DefaultEngineOverApi::read_log(const std::string& id, const char* which, std::string* text) {
  std::uint64_t bytes = 0;
  StreamFrames frames([&](StreamKind, std::string_view part) -> Result<void> {
    bytes += part.size();
    if (text == nullptr) return {};
    if (text->size() + part.size() > kLongestOutput) return fault("read the container's output: it is too long");
    text->append(part);
    return {};
  });
  const std::string what = "/logs?follow=false&" + std::string(which) + "=true";
  const HttpRequest request{.method = "GET", .target = engine_.target(place(id, what)), .body = {}};
  const auto answer = TRY(engine_.http().download(request, [&](std::string_view part) { return frames.take(part); }));
  if (answer.status != 200) return engine_.refused("read the container's output", answer);
  TRY_VOID(frames.end());
  return bytes;
}

Result<bool> DefaultEngineOverApi::has_file(const std::string& id, const std::string& path) {
  const std::string what = "/archive?path=" + url_encoded(path);
  const HttpRequest request{.method = "HEAD", .target = engine_.target(place(id, what)), .body = {}};
  const auto answer = TRY(engine_.http().call(request));
  if (answer.status != 200 && answer.status != 404) return engine_.refused("look for " + path, answer);
  return answer.status == 200;
}

Result<DefaultEnd> DefaultEngineOverApi::end(const std::string& id, const std::vector<std::string>& look_for) {
  DefaultEnd end;
  const json said = TRY(inspect_ended_container(engine_, id));
  end.out_of_memory = json_at(said, "/State/OOMKilled") == true;
  TRY(read_log(id, "stdout", &end.output));
  end.error_bytes = TRY(read_log(id, "stderr", nullptr));
  for (const auto& path : look_for)
    if (TRY(has_file(id, path))) end.found.push_back(path);
  const auto sized = TRY(engine_.call({"GET", place(id, "/json?size=true"), "look at the container", nullptr, {200}}));
  const json& written = json_at(sized.body, "/SizeRw");
  if (written.is_number_unsigned()) end.written = written.get<std::uint64_t>();
  return end;
}

// By its name, for its id may not have come. Podman would ask it to end first, and wait.
Result<void> DefaultEngineOverApi::remove(const std::string& run_id) {
  static_cast<void>(kill_container(engine_, container_name(run_id)));
  return remove_container(engine_, container_name(run_id));
}

}  // namespace

Result<std::unique_ptr<DefaultEngine>> default_engine(ApiKind kind, const std::string& rootfs) {
  std::optional<PodmanService> service;
  if (kind == ApiKind::podman && std::getenv("CONTAINER_HOST") == nullptr) {
    TRY_VOID(make_base_folders());
    TRY_VOID(make_root_directory(kOrderBase, 0700));
    service.emplace(TRY(PodmanService::start(kOrderBase, TRY(new_run_id()), TRY(runtime_of_the_host()))));
  }
  auto client = service ? TRY(EngineClient::connect(kind, service->endpoint())) : TRY(EngineClient::connect(kind));
  if (!client.endpoint().is_local())
    return fault("attempt in containers of " + std::string(to_text(kind)) + " at " + client.endpoint().text() +
                 ": they cannot be looked at from here; run benchsand on that host");
  auto engine = std::make_unique<DefaultEngineOverApi>(std::move(service), std::move(client));
  TRY_VOID(engine->learn());
  TRY_VOID(engine->import(rootfs));
  return engine;
}

}  // namespace benchsand
