// Scenes in gVisor: benchsand's bundle, as far as runsc can take it, without the door and without the watching. What the host can see
// is put into the places that a record has for it.
#pragma once

#include <string>

#include "conformance/scene.h"

namespace benchsand::conformance {

// `host` has the delegate of the controls, whose bundle is changed for `runsc`. Never an error, as run_scene.
SceneResult run_runsc_scene(const Host& host, const DelegateBinary& runsc, const Stage& stage,
                            const std::string& profile, const SceneOrder& order);

}  // namespace benchsand::conformance
