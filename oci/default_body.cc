#include "oci/default_body.h"

namespace benchsand {

using nlohmann::json;

namespace {

json docker_default(const DefaultBody& wanted) {
  json host = json::object();
  if (!wanted.runtime.empty()) host["Runtime"] = wanted.runtime;
  if (wanted.alone) host["NetworkMode"] = "none";
  if (!wanted.joins.empty()) host["NetworkMode"] = "container:" + wanted.joins;
  if (!wanted.cgroup_parent.empty()) {
    host["CgroupParent"] = wanted.cgroup_parent;
  } else {
    host["PidsLimit"] = kBoundProcesses;
    host["Memory"] = kBoundMemory;
  }
  return {{"Image", wanted.image}, {"Cmd", wanted.command}, {"Labels", wanted.labels}, {"HostConfig", host}};
}

json podman_default(const DefaultBody& wanted) {
  json body = {{"name", wanted.name}, {"image", wanted.image}, {"command", wanted.command}, {"labels", wanted.labels}};
  if (wanted.alone) body["netns"] = {{"nsmode", "none"}};
  if (!wanted.joins.empty()) body["netns"] = {{"nsmode", "container"}, {"value", wanted.joins}};
  if (!wanted.cgroup_parent.empty())
    body["cgroup_parent"] = wanted.cgroup_parent;
  else
    body["resource_limits"] = {{"pids", {{"limit", kBoundProcesses}}}, {"memory", {{"limit", kBoundMemory}}}};
  return body;
}

}  // namespace

json default_body(ApiKind kind, const DefaultBody& wanted) {
  return kind == ApiKind::docker ? docker_default(wanted) : podman_default(wanted);
}

}  // namespace benchsand
