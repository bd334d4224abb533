#include "oci/admit.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>

#include "fixtures.h"
#include "oci/config_shape.h"
#include "oci/strict_json.h"
#include "oci/walls.h"
#include "sample.h"

using namespace benchsand;
using nlohmann::json;

namespace {

const std::string kBundle = "/run/containerd/io.containerd.runtime.v2.task/moby/0123";
const std::string kOwn(64, 'a');
const std::string kDockerRoot = "/run/docker/runtime-runc/moby";

const Profile& strict() {
  static const Profile profile = [] {
    const auto parsed = parse_profile(fixture("../../profiles/strict.yaml"), "strict.yaml");
    REQUIRE(parsed);
    return *parsed;
  }();
  return profile;
}

// The folder that an engine has put its files for this container into.
std::string id_in(const std::string& name) {
  constexpr std::string_view kFolder = "-containers/";
  const std::string text = fixture("oci/" + name + ".json");
  const std::size_t at = text.find(kFolder);
  return at == std::string::npos ? kOwn : text.substr(at + kFolder.size(), 64);
}

AdmitContext context_of(const std::string& name) {
  if (name.starts_with("docker")) return {kBundle, kDockerRoot, strict()};
  if (name.starts_with("ctr")) return {"/run/containerd/io.containerd.runtime.v2.task/default/c", "", strict()};
  return {"/var/lib/containers/storage/overlay-containers/c/userdata", "", strict(), id_in(name)};
}

Admission admitted(const std::string& text, const std::string& name) {
  auto admission = admit(text, context_of(name));
  if (!admission) FAIL(admission.message());
  return *admission;
}

Admission sample_of(const std::string& name) {
  return admitted(fixture("oci/" + name + ".json"), name);
}

std::string walls_of(const std::vector<Refused>& refusals) {
  std::string walls;
  for (const auto& refusal : refusals) walls += (walls.empty() ? "" : " ") + refusal.wall;
  return walls;
}

bool edits(const Admission& admission, const std::string& field) {
  return std::any_of(admission.edits.begin(), admission.edits.end(), [&](const Edit& e) { return e.field == field; });
}

// Docker's plain document with one place changed.
Admission changed(const std::string& pointer, const json& value) {
  json document = json::parse(fixture("oci/docker-plain.json"));
  document[json::json_pointer(pointer)] = value;
  return admitted(document.dump(), "docker");
}

std::string message_of(const std::string& text) {
  const auto admission = admit(text, context_of("docker"));
  REQUIRE_FALSE(admission.has_value());
  CHECK(admission.error().kind == Error::Kind::usage);
  return admission.message();
}

}  // namespace

TEST_CASE("what engines write for plain containers is admitted, and what cannot be had is refused by name") {
  const std::pair<const char*, const char*> kSamples[] = {{"docker-plain", ""},
                                                          {"docker-image-volume", ""},
                                                          {"docker-privileged", ""},
                                                          {"docker-network-host", ""},
                                                          {"docker-pid-host", ""},
                                                          {"docker-caps", ""},
                                                          {"docker-ulimit", ""},
                                                          {"docker-init", ""},
                                                          {"docker-user", ""},
                                                          {"docker-bind-ro", ""},
                                                          {"docker-bind-rw", ""},
                                                          {"docker-volume", ""},
                                                          {"docker-tmpfs", ""},
                                                          {"docker-readonly", ""},
                                                          {"docker-hostname", ""},
                                                          {"docker-shm", ""},
                                                          {"docker-terminal", ""},
                                                          {"docker-exec", ""},
                                                          {"podman-none", ""},
                                                          {"podman-plain", ""},
                                                          {"podman-image-volume", ""},
                                                          {"podman-privileged", ""},
                                                          {"podman-host", ""},
                                                          {"podman-volumes", ""},
                                                          {"podman-named", ""},
                                                          {"podman-tmpfs", ""},
                                                          {"podman-limits", ""},
                                                          {"podman-readonly", ""},
                                                          {"podman-sdnotify", ""},
                                                          {"podman-exec", ""},
                                                          {"ctr-plain", ""},
                                                          {"ctr-host", ""},
                                                          {"ctr-privileged", ""},
                                                          {"ctr-mount", ""},
                                                          {"docker-device", "privileges"},
                                                          {"docker-sysctl", "namespaces"},
                                                          {"docker-bind-two", "output"},
                                                          {"docker-root-bind", "mounts"},
                                                          {"docker-sock", "mounts"},
                                                          {"docker-limits", "cpu-time"},
                                                          {"podman-device", "privileges namespaces"}};
  for (const auto& [name, walls] : kSamples) {
    CAPTURE(name);
    auto admission = sample_of(name);
    CAPTURE(refusal_text(admission.refusals));
    CHECK(walls_of(admission.refusals) == walls);
    const std::string engine = name;
    CHECK(admission.caller == (engine.starts_with("ctr") ? "containerd" : engine.substr(0, engine.find('-'))));
    CHECK(admission.notices.empty());
    if (*walls != '\0') continue;
    const auto policy =
        decide_admitted(admission, context_of(name), std::string(64, 'b'), sample::host(CgroupLayout::v2));
    CAPTURE(refusal_text(admission.refusals));
    CHECK(policy.has_value());
  }
}

TEST_CASE("one change of a plain document, and the rule that answers it") {
  struct Case {
    const char* pointer;
    json value;
    const char* wall;    // that refuses; empty: none does
    const char* edited;  // field of an edit that is due; empty: none
  };
  const json bind = {{"destination", "/x"}, {"type", "bind"}, {"source", "/srv/x"}, {"options", {"rbind", "ro"}}};
  const auto mount = [&](const json& change) {
    json result = bind;
    result.update(change);
    return result;
  };
  const json hook = {{{"path", "/usr/bin/x"}, {"args", {"x"}}}};
  const json network_hook = {{{"path", "/proc/1/exe"}, {"args", {"libnetwork-setkey", "-exec-root=/run/docker"}}}};
  const json device = {{{"path", "/dev/kvm"}, {"type", "c"}, {"major", 10}, {"minor", 232}}};
  const json null_device = {{{"path", "/dev/null"}, {"type", "c"}, {"major", 1}, {"minor", 3}}};
  const Case kCases[] = {
      {"/ociVersion", "1.2.0", "", "/ociVersion"},
      {"/hooks", {{"prestart", network_hook}}, "", "/hooks/prestart/0"},
      {"/hooks", {{"prestart", hook}}, "privileges", ""},
      {"/hooks", {{"createRuntime", hook}}, "privileges", ""},
      {"/hooks", {{"startContainer", hook}}, "privileges", ""},
      {"/hooks", {{"poststop", hook}}, "privileges", ""},
      {"/hooks", {{"ofTheFuture", hook}}, "privileges", ""},
      {"/annotations", {{"run.oci.handler", "krun"}}, "evidence", ""},
      {"/annotations", {{"org.systemd.property.X", "1"}}, "evidence", ""},
      {"/annotations", {{"org.criu.config", "/x"}}, "evidence", ""},
      {"/annotations", {{"krun.x", "1"}}, "evidence", ""},
      {"/annotations", {{"module.wasm.image/variant", "compat"}}, "evidence", ""},
      {"/annotations", {{"dev.gvisor.flag.x", "1"}}, "evidence", ""},
      {"/annotations", {{"io.containers.trace-syscall", "of:/x"}}, "evidence", ""},
      {"/annotations", {{"benchsand.profile", "x"}}, "evidence", ""},
      {"/annotations", {{"benchsand.limits.memroy", "1"}}, "evidence", ""},
      {"/annotations", {{"benchsand.limits.memory", "much"}}, "memory", ""},
      {"/annotations", {{"benchsand.limits.memory", "64GiB"}}, "memory", ""},
      {"/annotations", {{"benchsand.limits.wall_time", "0"}}, "", "/annotations/benchsand.limits.wall_time"},
      {"/annotations", {{"a/b", "c"}}, "", "/annotations/a~1b"},
      {"/annotations", {{"org.opencontainers.image.stopSignal", "15"}}, "", ""},
      {"/domainname", "x", "", "/domainname"},
      {"/vm", {{"kernel", {{"path", "/x"}}}}, "", "/vm"},
      {"/root/readonly", false, "", "/root/readonly"},
      {"/process/user/additionalGids", {4}, "", "/process/user"},
      {"/process/noNewPrivileges", false, "", "/process/noNewPrivileges"},
      {"/process/oomScoreAdj", -1000, "", "/process/oomScoreAdj"},
      {"/process/rlimits",
       {{{"type", "RLIMIT_NOFILE"}, {"soft", 1048576}, {"hard", 1048576}}},
       "",
       "/process/rlimits/0"},
      {"/process/rlimits", {{{"type", "RLIMIT_CORE"}, {"soft", 1}, {"hard", 1}}}, "", "/process/rlimits/0"},
      {"/process/rlimits", {{{"type", "RLIMIT_NOFILE"}, {"soft", 128}, {"hard", 128}}}, "", ""},
      {"/process/scheduler", {{"policy", "SCHED_FIFO"}}, "", "/process/scheduler"},
      {"/process/ioPriority", {{"class", "IOPRIO_CLASS_RT"}}, "", "/process/ioPriority"},
      {"/process/execCPUAffinity", {{"initial", "0"}}, "", "/process/execCPUAffinity"},
      {"/process/apparmorProfile", "unconfined", "", ""},
      {"/process/cwd", "srv", "mounts", ""},
      {"/process/env", {"LISTEN_FDS=1"}, "privileges", ""},
      {"/process/env", {"LISTEN_PID=1"}, "privileges", ""},
      {"/process/env", {"LISTEN_FDNAMES=a"}, "privileges", ""},
      {"/process/env", {"NOTIFY_SOCKET=/run/x"}, "", "/process/env/0"},
      {"/process/env", {"HOME=/srv"}, "", "/process/env/0"},
      {"/process/env", {"A=1", "A=2"}, "", "/process/env/1"},
      {"/process/env", {"A"}, "", "/process/env/0"},
      {"/process/env", {"=A"}, "", "/process/env/0"},
      {"/linux/namespaces", {{{"type", "network"}, {"path", "/run/netns/x"}}}, "", "/linux/namespaces/0"},
      {"/linux/namespaces", {{{"type", "pid"}, {"path", "/proc/7/ns/pid"}}}, "", "/linux/namespaces/0"},
      {"/linux/namespaces", json::array(), "", "/linux/namespaces"},
      {"/linux/namespaces", {{{"type", "time"}}}, "", "/linux/namespaces/0"},
      {"/linux/uidMappings", {{{"containerID", 0}, {"hostID", 0}, {"size", 9}}}, "", "/linux/uidMappings"},
      {"/linux/devices", device, "privileges", ""},
      {"/linux/devices", null_device, "", ""},
      {"/linux/netDevices", {{"eth0", json::object()}}, "network", ""},
      {"/linux/sysctl", {{"kernel.shm_rmid_forced", "1"}}, "namespaces", ""},
      {"/linux/sysctl", {{"net.ipv4.ping_group_range", "0 0"}}, "", "/linux/sysctl"},
      {"/linux/intelRdt", {{"closID", "x"}}, "cpu-time", ""},
      {"/linux/memoryPolicy", {{"mode", "MPOL_BIND"}}, "memory", ""},
      {"/linux/timeOffsets", {{"monotonic", {{"secs", 1}}}}, "namespaces", ""},
      {"/linux/maskedPaths", {"/proc/kcore", "/sys/firmware", "/proc/"}, "", "/linux/maskedPaths"},
      {"/linux/maskedPaths", {"/proc/kcore", "/solution"}, "mounts", "/linux/maskedPaths"},
      {"/linux/maskedPaths", {"/proc/../solution"}, "mounts", "/linux/maskedPaths"},
      {"/linux/maskedPaths", {"proc/../../sysroot"}, "mounts", "/linux/maskedPaths"},
      {"/linux/personality", {{"domain", "LINUX32"}}, "syscalls", ""},
      {"/linux/personality", {{"domain", "LINUX"}}, "", ""},
      {"/linux/rootfsPropagation", "shared", "", "/linux/rootfsPropagation"},
      {"/linux/cgroupsPath", "/x", "", "/linux/cgroupsPath"},
      {"/linux/resources/memory", {{"limit", std::uint64_t{1} << 40}}, "memory", ""},
      {"/linux/resources/memory", {{"limit", 134217728}, {"swap", -1}}, "", "/linux/resources/memory/swap"},
      {"/linux/resources/memory", {{"disableOOMKiller", true}}, "", "/linux/resources/memory/disableOOMKiller"},
      {"/linux/resources/pids", {{"limit", 2048}}, "processes", ""},
      {"/linux/resources/pids", {{"limit", -1}}, "", "/linux/resources/pids/limit"},
      {"/linux/resources/cpu", {{"quota", 6500000}, {"period", 100000}}, "cpu-time", ""},
      {"/linux/resources/cpu", {{"cpus", "0"}}, "cpu-time", ""},
      {"/linux/resources/cpu", {{"mems", "0"}}, "memory", ""},
      {"/linux/resources/cpu", {{"shares", 5}}, "", "/linux/resources/cpu/shares"},
      {"/linux/resources/unified", {{"memory.high", "max"}}, "evidence", ""},
      {"/linux/resources/rdma", {{"x", {{"hcaHandles", 1}}}}, "", "/linux/resources/rdma"},
      {"/linux/resources/blockIO", {{"weight", 500}}, "", "/linux/resources/blockIO"},
      {"/mounts/0", mount(json::object()), "", ""},
      {"/mounts/0", mount({{"destination", "x"}}), "", ""},
      {"/mounts/0", mount({{"options", {"bind", "ro", "exec", "suid", "rshared"}}}), "", "/mounts/0/options"},
      {"/mounts/0", mount({{"destination", "/"}}), "mounts", ""},
      {"/mounts/0", mount({{"destination", "/proc/x"}}), "mounts", ""},
      {"/mounts/0", mount({{"destination", "/dev/kvm"}}), "mounts", ""},
      {"/mounts/0", mount({{"destination", "/srv/../sys/x"}}), "mounts", ""},
      {"/mounts/0", mount({{"destination", "/proc"}}), "", "/mounts/0"},
      {"/mounts/0", {{"destination", "/x"}, {"type", "tmpfs"}, {"options", {"nosuid", "ro"}}}, "mounts", ""},
      {"/mounts/0", {{"destination", "/x"}, {"type", "tmpfs"}, {"options", {"ro", "tmpcopyup"}}}, "", "/mounts/0"},
      {"/mounts/0", {{"destination", "/x"}, {"type", "overlay"}, {"source", "overlay"}}, "mounts", ""},
      {"/mounts/0", {{"destination", "/x"}, {"type", "proc"}, {"source", "proc"}}, "mounts", ""},
      {"/mounts/0", {{"destination", "/x"}, {"type", "cgroup"}, {"source", "cgroup"}}, "mounts", ""},
      {"/mounts/0", mount({{"source", "/usr/share/x"}}), "", ""},
      {"/mounts/0", mount({{"source", "/usr/share/x"}, {"options", {"rbind"}}}), "output", ""},
      {"/mounts/0", mount({{"source", "/srv/x"}, {"options", {"rbind"}}}), "", "/mounts/0"},
      {"/mounts/0", mount({{"destination", "/output/in"}}), "output", ""},
      {"/mounts/0", mount({{"destination", "/etc"}}), "mounts mounts mounts", ""},
  };
  for (const auto& [pointer, value, wall, edited] : kCases) {
    CAPTURE(pointer);
    CAPTURE(value.dump());
    const Admission admission = changed(pointer, value);
    CAPTURE(refusal_text(admission.refusals));
    CHECK(walls_of(admission.refusals) == wall);
    const bool due = *edited != '\0';
    CHECK(edits(admission, due ? edited : pointer) == due);
    for (const auto& edit : admission.edits) {
      const auto& walls = wall_names();
      CHECK(std::find(walls.begin(), walls.end(), edit.wall) != walls.end());
    }
  }
}

TEST_CASE("files of the host are never handed in, under whatever name") {
  for (const char* source : {"/",
                             "/proc",
                             "/proc/1/root",
                             "/sys",
                             "/dev",
                             "/dev/kvm",
                             "/run",
                             "/run/x",
                             "/var/run/x",
                             "/etc",
                             "/etc/shadow",
                             "/root",
                             "/root/.ssh",
                             "/boot",
                             "/var",
                             "/var/lib",
                             "/var/lib/docker",
                             "/var/lib/docker/overlay2/x",
                             "/var/lib/containers",
                             "/var/lib/containerd/x",
                             "/run/containerd",
                             "/var/lib/benchsand",
                             "/srv/docker.sock",
                             "/srv/containerd.sock",
                             "/srv/podman.sock",
                             "//etc",
                             "/srv/../etc",
                             "/./",
                             "/srv/../../etc/."})
    CHECK_MESSAGE(source_refused(source, "/x", kOwn), source);
  for (const char* source : {"/srv", "/srv/etc", "/etcetera", "/home", "/var/lib/docker/volumes/data/_data",
                             "/var/lib/containers/storage/volumes/a/_data", "/variable", "/devel"})
    CHECK_MESSAGE(!source_refused(source, "/x", kOwn), source);
  CHECK(source_refused("/etc/volumes/a/_data", "/x", kOwn));
  CHECK(source_refused("/var/lib/docker/volumes/a/_data/..", "/x", kOwn));
}

TEST_CASE("of an engine's store a container gets its own files, and those about the network") {
  const std::string other(64, 'b');
  for (const std::string folder :
       {"/var/lib/docker/containers/", "/run/containers/storage/overlay-containers/",
        "/var/lib/containers/storage/vfs-containers/", "/run/containerd/io.containerd.grpc.v1.cri/sandboxes/"}) {
    CAPTURE(folder);
    CHECK_FALSE(source_refused(folder + kOwn + "/hosts", "/etc/hosts", kOwn));
    CHECK_FALSE(source_refused(folder + kOwn + "/userdata/run/secrets", "/run/secrets", kOwn));
    CHECK_FALSE(source_refused(folder + kOwn + "/mounts/secrets/x", "/run/secrets/x", kOwn));
    CHECK_FALSE(source_refused(folder + other + "/hosts", "/etc/hosts", kOwn));
    CHECK_FALSE(source_refused(folder + other + "/userdata/resolv.conf", "/etc/resolv.conf", kOwn));
    CHECK(source_refused(folder + kOwn + "/hosts", "/x", kOwn));
    CHECK(source_refused(folder + other + "/hosts", "/x", kOwn));
    CHECK(source_refused(folder + other + "/mounts/secrets/x", "/run/secrets/x", kOwn));
    CHECK(source_refused(folder + other + "/config.v2.json", "/etc/hosts", kOwn));
    CHECK(source_refused(folder + other + "/hosts/../config.v2.json", "/etc/hosts", kOwn));
    CHECK(source_refused(folder + other + "/a/hosts", "/etc/hosts", kOwn));
    CHECK(source_refused(folder + kOwn + "/../../overlay2/x", "/run/secrets/x", kOwn));
    CHECK(source_refused(folder + "a/hosts", "/etc/hosts", kOwn));
  }
  const std::vector<std::string> inside = {"/diff", "/diff/hosts", "/fs/etc/hosts",
                                           "/diff/containers/" + kOwn + "/hosts", "/diff/volumes/a/_data"};
  for (const std::string layer : {"/var/lib/docker/overlay2/", "/var/lib/containers/storage/overlay/",
                                  "/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/snapshots/"})
    for (const auto& name : {kOwn, other, std::string("7")})
      for (const auto& rest : inside) {
        CAPTURE(layer + name + rest);
        CHECK(source_refused(layer + name + rest, "/run/secrets/x", kOwn));
        CHECK(source_refused(layer + name + rest, "/etc/hosts", kOwn));
      }
  CHECK(source_refused("/etc/shadow", "/etc/hosts", kOwn));
  CHECK(source_refused("/etc/" + kOwn + "/hosts", "/etc/hosts", kOwn));
  CHECK(source_refused("/etc/containers/" + kOwn + "/hosts", "/etc/hosts", kOwn));
  CHECK(source_refused("/var/lib/docker/containers/a/hosts", "/etc/hosts", "a"));
}

TEST_CASE("what is written back to, and what is a root file system") {
  for (const char* source : {"/etc", "/usr", "/usr/local/lib", "/lib64/x", "/srv/../bin"})
    CHECK_MESSAGE(output_refused(source, "/x", kOwn), source);
  for (const char* source : {"/srv", "/opt/usr", "/opt/u/out"})
    CHECK_MESSAGE(!output_refused(source, "/x", kOwn), source);
  for (const char* rootfs :
       {"/", "/etc", "/etc/x", "/usr", "/usr/lib", "/home", "/var", "/proc/1/root", "/root", "/tmp/.."})
    CHECK_MESSAGE(rootfs_refused(rootfs), rootfs);
  for (const char* rootfs : {"/srv/rootfs", "/srv/bundle/rootfs", "/var/lib/docker/overlay2/a/merged",
                             "/run/containerd/io.containerd.runtime.v2.task/n/a/rootfs", "/tmp/rootfs"})
    CHECK_MESSAGE(!rootfs_refused(rootfs), rootfs);
}

TEST_CASE("a document that two readers could understand differently is no document") {
  const std::string plain = fixture("oci/docker-plain.json");
  const auto with = [&](const std::string& from, const std::string& to) {
    const std::size_t at = plain.find(from);
    REQUIRE(at != std::string::npos);
    return std::string(plain).replace(at, from.size(), to);
  };
  CHECK(message_of(with("\"root\":", "\"root\":{},\"root\":")) == "config.json: \"/root\": the key stands twice");
  CHECK(message_of(with("\"root\":", "\"root\":null,\"root\":")) == "config.json: \"/root\": the key stands twice");
  CHECK(message_of(with("\"root\":", "\"Root\":{\"path\":\"/\"},\"root\":")) ==
        "config.json: \"/Root\": some readers take it for \"root\"");
  CHECK(message_of(with("\"noexec\"", "{\"a\":1,\"a\":2}")).ends_with(": the key stands twice"));
  CHECK(message_of(with("\"oomScoreAdj\":", "\"oomScoreadj\":1,\"oomScoreAdj\":")) ==
        "config.json: \"/process/oomScoreadj\": some readers take it for \"oomScoreAdj\"");
  // Go folds the long s and the Kelvin sign too.
  CHECK(message_of(with("\"hooks\":{}", "\"hoo\u212As\":{},\"hooks\":{}")).find("some readers take it for \"hooks\"") !=
        std::string::npos);
  CHECK(message_of(with("\"mounts\":", "\"mount\u017F\":[],\"mounts\":")).find("for \"mounts\"") != std::string::npos);
  CHECK(message_of(with("\"oomScoreAdj\":0", "\"oomScoreAdj\":NaN"))
            .starts_with("config.json: \"/process/oomScoreAdj\": no JSON from byte "));
  CHECK(message_of(with("\"oomScoreAdj\":0", "\"oomScoreAdj\":1e999")).find("a number that is too large") !=
        std::string::npos);
  CHECK(message_of(with("\"oomScoreAdj\":0", "\"oomScoreAdj\":0.5")) ==
        "config.json: \"/process/oomScoreAdj\": an integer is due here");
  CHECK(message_of(with("\"args\":[\"true\"]", "\"args\":\"true\"")) ==
        "config.json: \"/process/args\": a list is due here");
  CHECK(message_of(with("\"args\":[\"true\"]", "\"args\":[\"a\\u0000\"]")) ==
        "config.json: \"/process/args/0\": text is due here");
  CHECK(message_of(with("\"args\":[\"true\"]", "\"args\":[]")) ==
        "config.json: \"/process/args\": the program is missing");
  CHECK(message_of(with("\"cwd\":\"/\",", "")) == "config.json: \"/process/cwd\": is missing");
  CHECK(message_of(plain + "{}").starts_with("config.json: no JSON from byte "));
  CHECK(message_of("[]") == "config.json: \"\": an object is due here");
  CHECK(message_of("") == "config.json: no JSON from byte 1 on");
  std::string deep = R"({"x":)";
  for (std::size_t i = 1; i < kDeepestJson; ++i) deep += "[";
  CHECK(message_of(deep + "[").ends_with(": deeper than 64 levels"));
  CHECK(message_of(std::string(kLargestJson + 1, ' ')) == "config.json: 4194305 bytes, at most 4194304 are read");
}

TEST_CASE("wishes become limits of the task, the smaller one where there are two") {
  json document = json::parse(fixture("oci/docker-plain.json"));
  document["linux"]["resources"] = {{"memory", {{"limit", 134217728}, {"swap", -1}}},
                                    {"pids", {{"limit", 20}}},
                                    {"cpu", {{"quota", 50001}, {"period", 100000}}}};
  document["annotations"] = {
      {"benchsand.limits.memory", "1GiB"}, {"benchsand.limits.processes", "10"}, {"benchsand.limits.wall_time", "3s"}};
  document["process"]["rlimits"] = {{{"type", "RLIMIT_NOFILE"}, {"soft", 128}, {"hard", 4096}}};
  auto admission = admitted(document.dump(), "docker");
  const auto policy = decide_admitted(admission, context_of("docker"), "", sample::host(CgroupLayout::v2));
  REQUIRE(policy);
  CHECK(policy->limits.memory_bytes == 134217728);
  CHECK(policy->limits.processes == 10);
  CHECK(policy->limits.cpus_milli == 501);
  CHECK(policy->limits.wall_time_us == 3'000'000);
  CHECK(policy->limits.open_files == 128);
  CHECK(policy->limits.disk_bytes == 64 << 20);
}

TEST_CASE("the one place that can be written to") {
  auto admission = sample_of("docker-plain");
  CHECK(admission.output.target == "/output");
  CHECK(admission.output.source.empty());
  admission = sample_of("docker-bind-rw");
  CHECK(admission.output.target == "/output");
  CHECK(admission.output.source == "/srv/host/out");
  admission = sample_of("docker-volume");
  CHECK(admission.output.source == "/var/lib/docker/volumes/named/_data");
  admission = sample_of("podman-tmpfs");
  CHECK(admission.output.target == "/scratch");
  CHECK(admission.output.source.empty());
  CHECK(admission.task.limits.at("disk").value == 16 << 20);
  admission = sample_of("ctr-plain");
  CHECK(admission.output.target == "/output");
  admission = sample_of("podman-readonly");
  CHECK(admission.output.target == "/output");
  admission = sample_of("docker-image-volume");
  CHECK(admission.output.target == "/output");
  CHECK(std::any_of(admission.task.inputs.begin(), admission.task.inputs.end(),
                    [](const InputMount& input) { return input.target == "/data"; }));
}

TEST_CASE("what decide refuses comes back as a refusal with a wall") {
  auto admission = changed("/linux/resources/memory", {{"limit", 1 << 20}});
  CHECK(admission.refusals.empty());
  CHECK_FALSE(decide_admitted(admission, context_of("docker"), "", sample::host(CgroupLayout::v2)));
  CHECK(walls_of(admission.refusals) == "memory");
}

TEST_CASE("all refusals in one line, in words that no engine takes for an exit code") {
  json document = json::parse(fixture("oci/docker-bind-two.json"));
  document["linux"]["sysctl"] = {{"no such file or directory", "Permission Denied"}};
  document["hooks"] = {{"poststop", {{{"path", "/executable file not found\n"}}}}};
  const auto admission = admitted(document.dump(), "docker");
  const std::string text = refusal_text(admission.refusals);
  CHECK(text ==
        "benchsand refuses this container: wall privileges: the poststop hook "
        "\"/the program is not there\\n\" would run on the host (cure: start it without what adds that hook); wall "
        "output: more than one place can be written to: \"/output\", \"/two\" (cure: keep one of them, and mount the "
        "others read-only (:ro)); wall namespaces: the sysctl \"it is not there\" would change the kernel's "
        "own default (cure: start it without --sysctl)");
}

TEST_CASE("the delegate's document is the policy's, with what is unknown kept") {
  json document = json::parse(fixture("oci/docker-privileged.json"));
  document["future"] = {{"a", 1}};
  document["process"]["future"] = 2;
  document["process"]["user"]["future"] = 2;
  document["linux"]["future"] = 3;
  document["linux"]["resources"]["future"] = 3;
  document["process"]["selinuxLabel"] = "label";
  document["process"]["scheduler"] = {{"policy", "SCHED_FIFO"}};
  auto admission = admitted(document.dump(), "docker");
  REQUIRE(admission.refusals.empty());
  const HostFacts host = sample::host(CgroupLayout::v2);
  auto policy = decide_admitted(admission, context_of("docker"), "", host);
  REQUIRE(policy);
  const BundlePlaces places = {"/run/benchsand-mounts/rootfs", "/run/benchsand-mounts/output", "/benchsand/r1/ct",
                               "/l"};
  json edited = json::parse(edited_config(admission, *policy, host, places));
  const json ours = json::parse(render_bundle(*policy, host, places));
  CHECK(admission.notices.size() == 3);
  CHECK(edits(admission, "/process/user/future"));
  CHECK(edits(admission, "/linux/resources/future"));
  CHECK(edited["process"]["selinuxLabel"] == "label");
  for (const char* kept : {"/future", "/process/future", "/process/selinuxLabel", "/linux/future"}) {
    const json::json_pointer place(kept);
    CHECK(edited.contains(place));
    edited.at(place.parent_pointer()).erase(place.back());
  }
  CHECK(edited == ours);
}

TEST_CASE("docs/admission.md has the table of rules, and every rule has a wall") {
  const std::string page = fixture("../../docs/admission.md");
  // Put admit_rules_page() there when this fails.
  CHECK_MESSAGE(page.find("\n" + admit_rules_page() + "\n") != std::string::npos, admit_rules_page());
  for (const auto& rule : admit_rules()) {
    const auto& walls = wall_names();
    CHECK(std::find(walls.begin(), walls.end(), rule.wall) != walls.end());
  }
}

TEST_CASE("the bundles made of what engines write") {
  for (const char* name : {"docker-plain", "podman-volumes", "ctr-mount", "docker-terminal"}) {
    CAPTURE(name);
    auto admission = sample_of(name);
    const HostFacts host = sample::host(CgroupLayout::v2);
    const auto policy = decide_admitted(admission, context_of(name), "", host);
    REQUIRE(policy);
    const BundlePlaces places = {"/run/benchsand-mounts/rootfs", "/run/benchsand-mounts/output", "/benchsand/r1/ct",
                                 "/run/benchsand/r1/listener"};
    json all = {{"config", json::parse(edited_config(admission, *policy, host, places))},
                {"edits", json::array()},
                {"output", {{"target", admission.output.target}, {"source", admission.output.source}}},
                {"relaxations", policy->relaxations}};
    all["config"]["linux"].erase("seccomp");  // the profile's, and long
    for (const auto& [field, from, to, wall] : admission.edits)
      all["edits"].push_back(wall + ": " + field + ": " + from + " -> " + to);
    const std::string text = all.dump(1) + "\n";
    const std::string golden = std::string("admit-") + name + ".json";
    if (std::getenv("BENCHSAND_WRITE_GOLDEN") != nullptr)
      std::ofstream(BENCHSAND_SOURCE_DIR "/tests/golden/" + golden) << text;
    CHECK(fixture("../golden/" + golden) == text);
  }
}
