#include "shim/runtime_verbs.h"

namespace benchsand {

Result<int> verb_create(const RuntimeContext&, const RuntimeCall&) {
  return fault("create: not in this build");
}

Result<int> verb_start(const RuntimeContext&, const RuntimeCall&) {
  return fault("start: not in this build");
}

Result<int> verb_run(const RuntimeContext&, const RuntimeCall&) {
  return fault("run: not in this build");
}

Result<int> verb_exec(const RuntimeContext&, const RuntimeCall&) {
  return fault("exec: not in this build");
}

Result<int> verb_update(const RuntimeContext&, const RuntimeCall&) {
  return fault("update: not in this build");
}

Result<int> verb_delete(const RuntimeContext&, const RuntimeCall&) {
  return fault("delete: not in this build");
}

}  // namespace benchsand
