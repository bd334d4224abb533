#include "oci/image_notices.h"

#include <algorithm>

#include "oci/yaml_tree.h"

namespace benchsand {

namespace {

std::string in_brackets(const std::vector<std::string>& words) {
  std::string text = "[";
  for (const auto& word : words) text += (text.size() == 1 ? "" : ", ") + in_quotes(word);
  return text + "]";
}

std::vector<std::string> started_by(const ImageConfig& config) {
  std::vector<std::string> words = config.entrypoint;
  words.insert(words.end(), config.command.begin(), config.command.end());
  return words;
}

// A program is looked up by the run's PATH; where the image has another one, that is what goes wrong most.
std::string env_notice(const ImageConfig& config, const Policy& policy) {
  std::string names, path;
  for (const auto& variable : config.env) {
    if (std::find(policy.env.begin(), policy.env.end(), variable) != policy.env.end()) continue;
    const std::string name = variable.substr(0, variable.find('='));
    if (name == "PATH" && name.size() < variable.size())
      path = variable.substr(name.size() + 1);
    else
      names += (names.empty() ? "" : ", ") + in_quotes(name);
  }
  std::string text;
  if (!path.empty()) text = "image: its PATH is not used, " + in_quotes(path) + "; a task can say it, env: {PATH: …}";
  if (!names.empty())
    text += std::string(text.empty() ? "image: its ENV is" : ", nor is its ENV") +
            (text.empty() ? " not used: " : ": ") + names;
  return text;
}

}  // namespace

std::vector<std::string> image_notices(const ImageConfig& config, const Policy& policy) {
  std::vector<std::string> notices;
  const auto words = started_by(config);
  if (!words.empty() && words != policy.command)
    notices.push_back("image: its ENTRYPOINT " + in_brackets(config.entrypoint) + " and CMD " +
                      in_brackets(config.command) + " are not used: the task's command is");
  if (const std::string env = env_notice(config, policy); !env.empty()) notices.push_back(env);
  if (!config.user.empty())
    notices.push_back("image: its USER " + in_quotes(config.user) + " is not used: the candidate is " +
                      std::to_string(policy.uid) + ":" + std::to_string(policy.gid));
  if (!config.workdir.empty() && config.workdir != policy.workdir)
    notices.push_back("image: its WORKDIR " + in_quotes(config.workdir) + " is not used: the run starts in " +
                      in_quotes(policy.workdir));
  if (!config.volumes.empty())
    notices.push_back("image: its VOLUME " + in_brackets(config.volumes) + " is not used: the one writable place is " +
                      in_quotes(policy.output));
  return notices;
}

std::string suggested_command(const ImageConfig& config) {
  const auto words = started_by(config);
  return words.empty() ? "" : "command: " + in_brackets(words);
}

}  // namespace benchsand
