// The verdict of a case in a container that is not benchsand's: whether the attempt is refused at all, by whatever refuses it there.
// Without a policy there is nothing that must refuse, and without a record only what the host sees by itself. Pure; the rules are
// in docs/conformance.md, "An engine by itself".
#pragma once

#include <string>

#include "conformance/judge.h"

namespace benchsand::conformance {

// Of `connect:` and `send:`, those to another place than the loopback.
bool leaves_the_host(const std::string& verb);

CaseResult judge_default_case(const Case& one, const HostFacts& host_facts, const SceneResult& there,
                              const SceneResult* control);

}  // namespace benchsand::conformance
