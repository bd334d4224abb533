// A container that an engine (Docker, Podman, containerd) asks for, read as a task: what of its config.json is taken, what
// becomes something else (an edit), and what cannot be had behind the walls and is refused. Never weaker than the profile.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "oci/bundle.h"
#include "oci/policy.h"

namespace benchsand {

// What was changed. `from` and `to` are for a reader: JSON where it is short, words where it is not.
struct Edit {
  std::string field;  // JSON pointer into the engine's config.json
  std::string from, to;
  std::string wall;
  bool operator==(const Edit&) const = default;
};

struct Refused {
  std::string wall;
  std::string what;  // what cannot be had
  std::string cure;  // what to do instead
  bool operator==(const Refused&) const = default;
};

// Where the container writes. The file system is the run's own; `source` is the host directory of the one writable bind or
// volume: what it holds is copied in at the start, what is collected is written back. Empty: the container's own layer.
struct AdmittedOutput {
  std::string target;
  std::string source;
};

struct AdmitContext {
  std::string bundle;  // absolute; relative paths of the document are relative to it
  std::string root;    // the engine's --root, empty when it gave none
  const Profile& profile;
  std::string container = {};  // its id
};

struct Admission {
  nlohmann::json document;  // the engine's, without what was dropped; edited_config lays the policy over it
  TaskSpec task;            // sources absolute
  AdmittedOutput output;
  bool terminal = false;
  std::string sha256;  // of the engine's text
  std::string caller;  // docker, podman, containerd, unknown
  std::vector<Edit> edits;
  std::vector<Refused> refusals;     // not empty: the container must not be made, and `task` is not complete
  std::vector<std::string> notices;  // unknown fields that are handed on
};

// An error (kind usage) only for a document that cannot be read as a config.json; all else is in the Admission, at once.
Result<Admission> admit(const std::string& config_text, const AdmitContext& context);

// decide() for an admitted container. What the profile refuses (more than its maximum, targets that overlap) is added to
// `refusals`, and nothing comes back.
std::optional<Policy> decide_admitted(Admission& admission, const AdmitContext& context,
                                      const std::string& profile_sha256, const HostFacts& host);

// The delegate's config.json: render_bundle's fields laid over the engine's document.
std::string edited_config(const Admission& admission, const Policy& policy, const HostFacts& host,
                          const BundlePlaces& places);

// All refusals in one line, for the engine to show. Never words from which an engine would conclude an exit code.
std::string refusal_text(const std::vector<Refused>& refusals);

// Whether files from there may be handed in at `target` of this container: asked here of the path as written, and again by who
// opens it, of the path that it leads to.
std::optional<Refused> source_refused(const std::string& source, const std::string& target,
                                      const std::string& container);
// The same of what is written back to.
std::optional<Refused> output_refused(const std::string& source, const std::string& target,
                                      const std::string& container);
// Of the directory that an engine hands in as root file system.
std::optional<Refused> rootfs_refused(const std::string& rootfs);

// The table of docs/runtime.md.
struct AdmitRule {
  const char* field;  // pointer; '*' is each element
  const char* wall;
  const char* words;  // what becomes of it
};
std::vector<AdmitRule> admit_rules();
std::string admit_rules_page();  // as a Markdown table

}  // namespace benchsand
