#include "oci/image_entry.h"

#include "oci/image_ref.h"
#include "oci/strict_json.h"

namespace benchsand {

using nlohmann::json;

json image_entry_json(const ImageEntry& entry) {
  const ImageConfig& config = entry.config;
  return {{"digest", entry.digest},
          {"names", entry.names},
          {"ids", entry.ids},
          {"unpacked", entry.unpacked},
          {"bytes", entry.bytes},
          {"entries", entry.entries},
          {"notices", entry.notices},
          {"created", config.created},
          {"platform", {config.platform.os, config.platform.architecture, config.platform.variant}},
          {"env", config.env},
          {"entrypoint", config.entrypoint},
          {"cmd", config.command},
          {"volumes", config.volumes},
          {"user", config.user},
          {"workdir", config.workdir}};
}

Result<ImageEntry> parse_image_entry(const std::string& text, const std::string& where) {
  const json document = TRY(parse_strict_json(text, where));
  try {
    ImageEntry entry;
    document.at("digest").get_to(entry.digest);
    document.at("names").get_to(entry.names);
    document.at("ids").get_to(entry.ids);
    document.at("unpacked").get_to(entry.unpacked);
    document.at("bytes").get_to(entry.bytes);
    document.at("entries").get_to(entry.entries);
    document.at("notices").get_to(entry.notices);
    ImageConfig& config = entry.config;
    document.at("created").get_to(config.created);
    config.platform = {document.at("platform").at(0), document.at("platform").at(1), document.at("platform").at(2)};
    document.at("env").get_to(config.env);
    document.at("entrypoint").get_to(config.entrypoint);
    document.at("cmd").get_to(config.command);
    document.at("volumes").get_to(config.volumes);
    document.at("user").get_to(config.user);
    document.at("workdir").get_to(config.workdir);
    if (is_digest(entry.digest)) return entry;
    return fault(where + ": it has not the form that benchsand writes: the digest " + entry.digest);
  } catch (const json::exception& error) {
    return fault(where + ": it has not the form that benchsand writes: " + error.what());
  }
}

}  // namespace benchsand
