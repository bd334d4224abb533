// What the author of a task wrote, and nothing more: no default is filled in here (decide does that in policy.h).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "oci/image_ref.h"
#include "oci/limits.h"
#include "oci/result.h"

namespace benchsand {

// A bound as asked for. Zero, negative, NaN and infinite bounds parse: decide turns them into the profile's default
// with a notice, because a run without a bound must not be something one can ask for.
struct AskedBound {
  bool usable = false;      // finite and greater than zero
  std::uint64_t value = 0;  // in the unit of the field, when usable
  std::string text;         // as written
  std::string where;        // "task.yaml:7:13", or "--set limits.memory"
};

struct InputMount {
  std::string source;  // as written: relative to the task file, or absolute
  std::string target;  // absolute, inside the sandbox
  bool operator==(const InputMount&) const = default;
};

struct TaskSpec {
  std::string name;
  std::optional<std::string> profile;  // absent: strict
  std::string rootfs;                  // directory or tar; empty: there is an image
  std::optional<ImageRef> image;
  std::vector<std::string> command;
  // Of a task that has an image and no command: the error, complete. An image may have one to suggest.
  std::string command_missing;
  std::map<std::string, std::string> env;
  std::optional<std::string> workdir;     // absent: the output directory
  std::optional<std::string> stdin_file;  // absent: empty
  std::vector<InputMount> inputs;
  std::string output = "/output";
  std::map<std::string, AskedBound> limits;  // by LimitField::name
  // Where it was written: "task.yaml:7:13", by "rootfs", "inputs[0].target", …
  std::map<std::string, std::string> places;

  // "task.yaml:7:13: ", or nothing for what was not written in a file.
  std::string place_of(const std::string& key) const {
    const auto found = places.find(key);
    return found == places.end() ? "" : found->second + ": ";
  }
};

// One `--set limits.NAME=VALUE`.
struct Setting {
  std::string key;
  std::string value;
};

// `name` is what messages call the file (its path as the user gave it). Every problem is reported as
//   NAME:LINE:COLUMN: error: TEXT
//     the source line
//         ^
// Kind usage. Unknown, duplicate or misspelt keys are errors, with "did you mean …" where a known key is close.
Result<TaskSpec> parse_task_spec(const std::string& text, const std::string& name);

// Applies `--set` on top of a parsed task; only limits.* can be set. Later ones win.
Result<void> apply_setting(TaskSpec& task, const Setting& setting);

}  // namespace benchsand
