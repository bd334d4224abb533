// The records of containers, beyond what a run's record holds: who asked, what was changed in what was asked for, what was refused.
#pragma once

#include "oci/record.h"
#include "shim/monitor.h"

namespace benchsand {

// Which container, and what became of its config.json; for RunFacts.
void note_container(const ContainerOrder& order, RunFacts& facts);

// What was changed in an exec or an update, one list a call.
void note_edits(const std::string& verb, const std::vector<Edit>& edits, RunFacts& facts);

// A container that is refused, or cannot be made, leaves a record too: whoever asks later sees that there is no score, and why.
// `why`: what went wrong where nothing was refused.
Result<void> record_not_made(const Host& host, const ContainerOrder& order, const std::string& why);

// What the newest record of a container says went wrong; empty where it does not.
std::string recorded_fault(const std::string& container);

// Of a monitor that was killed: what it left at `path` becomes the record, unless it has written one of this run. Then it is gone.
Result<void> keep_unfinished_record(const std::string& path);
// Into the store, and the store is kept at its size.
Result<void> keep_record(const nlohmann::json& record, const std::string& container);

}  // namespace benchsand
