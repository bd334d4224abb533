#include "oci/front_order.h"

#include <nlohmann/json.hpp>

#include "oci/strict_json.h"

namespace benchsand {

using nlohmann::json;

namespace {

constexpr int kVersion = 1;

struct TextField {
  const char* key;
  std::string FrontOrder::*member;
};
constexpr TextField kTexts[] = {{"run", &FrontOrder::run_id},      {"engine", &FrontOrder::engine},
                                {"task", &FrontOrder::task_path},  {"task_sha256", &FrontOrder::task_sha256},
                                {"profile", &FrontOrder::profile}, {"profile_sha256", &FrontOrder::profile_sha256},
                                {"results", &FrontOrder::results}, {"image", &FrontOrder::image}};

}  // namespace

std::string front_order_json(const FrontOrder& order) {
  json document = {{"benchsand_order", kVersion}, {"settings", json::array()}};
  for (const auto& field : kTexts) document[field.key] = order.*field.member;
  for (const auto& setting : order.settings) document["settings"].push_back({setting.key, setting.value});
  return document.dump() + "\n";
}

Result<FrontOrder> parse_front_order(const std::string& text, const std::string& name) {
  const auto bad = [&](const std::string& why) { return fault("read the order " + name + ": " + why); };
  const json document = TRY(parse_strict_json(text, name));
  if (!document.is_object() || document.value("benchsand_order", 0) != kVersion)
    return bad("it is not of this version of benchsand");
  FrontOrder order;
  for (const auto& field : kTexts) {
    const auto found = document.find(field.key);
    if (found == document.end() || !found->is_string()) return bad(std::string("it has no text \"") + field.key + "\"");
    order.*field.member = found->get<std::string>();
  }
  const auto settings = document.find("settings");
  if (settings == document.end() || !settings->is_array()) return bad("it has no list \"settings\"");
  for (const auto& setting : *settings) {
    if (!setting.is_array() || setting.size() != 2 || !setting[0].is_string() || !setting[1].is_string())
      return bad("a setting is not a pair of texts");
    order.settings.push_back({setting[0].get<std::string>(), setting[1].get<std::string>()});
  }
  if (document.size() != std::size(kTexts) + 2) return bad("it has a key that is none of an order");
  return order;
}

}  // namespace benchsand
