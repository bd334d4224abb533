// Puts the root file system of a task into the store of the engine that the environment names, as a run without benchsand's
// runtime does, and prints the image's id and the notices. For tests/engines/stored.py. Not installed.
//
// usage: image-of-task docker|podman TASK.yaml
#include <cstdio>
#include <string>

#include "shim/engine_images.h"
#include "shim/load.h"

using namespace benchsand;

static Result<std::string> put(ApiKind kind, const std::string& task) {
  auto policy = TRY(load_policy({task, {}, {}, {}}, host_facts(CgroupLayout::v2, {"", "", ""})));
  auto engine = TRY(EngineClient::connect(kind));
  std::string text = TRY(image_in_engine(engine, policy)) + "\n";
  for (const auto& notice : policy.notices) text += notice + "\n";
  return text;
}

int main(int count, char** arguments) {
  if (count != 3) return 2;
  const ApiKind kind = std::string(arguments[1]) == "podman" ? ApiKind::podman : ApiKind::docker;
  const auto done = put(kind, arguments[2]);
  std::fputs(done ? done->c_str() : (done.error().message + "\n").c_str(), stdout);
  if (done) return 0;
  return done.error().kind == Error::Kind::usage ? 2 : 3;
}
