#include "oci/strict_json.h"

#include <set>
#include <vector>

#include "oci/yaml_tree.h"

namespace benchsand {

using nlohmann::json;

namespace {

// Builds the document while it is read, so that a second key is still seen as a second one.
class Builder : public nlohmann::json_sax<json> {
 public:
  explicit Builder(std::string name) : name_(std::move(name)) {}

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return refuse("binary data is no JSON"); }
  bool start_object(std::size_t) override { return open(json::object()); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(json::array()); }
  bool end_array() override { return close(); }

  bool key(string_t& value) override {
    Level& level = open_.back();
    level.key = value;
    if (!level.keys.insert(value).second) return refuse("the key stands twice");
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const json::exception& error) override {
    // Its own text begins with "[json.exception.…] ", and may quote the document.
    const std::string what = error.what();
    const bool too_large = what.find("out_of_range") != std::string::npos;
    return refuse(too_large ? "a number that is too large, at byte " + std::to_string(position)
                            : "no JSON from byte " + std::to_string(position) + " on");
  }

  json take_document() { return std::move(document_); }
  const std::string& problem() const { return problem_; }

 private:
  struct Level {
    json value;
    std::string key;             // of the member that is being read
    std::set<std::string> keys;  // all so far, those of null members too
  };

  bool open(json value) {
    if (open_.size() == kDeepestJson) return refuse("deeper than " + std::to_string(kDeepestJson) + " levels");
    open_.push_back({std::move(value), {}, {}});
    return true;
  }

  bool close() {
    json value = std::move(open_.back().value);
    open_.pop_back();
    return add(std::move(value));
  }

  bool add(json value) {
    if (open_.empty()) {
      document_ = std::move(value);
      return true;
    }
    Level& level = open_.back();
    if (level.value.is_array())
      level.value.push_back(std::move(value));
    else if (!value.is_null())
      level.value[level.key] = std::move(value);
    return true;
  }

  std::string pointer() const {
    std::string path;
    for (const Level& level : open_)
      path += "/" + (level.value.is_array() ? std::to_string(level.value.size()) : pointer_token(level.key));
    return path;
  }

  bool refuse(const std::string& why) {
    const std::string path = pointer();
    problem_ = name_ + ": " + (path.empty() ? "" : in_quotes(path) + ": ") + why;
    return false;
  }

  std::string name_, problem_;
  std::vector<Level> open_;
  json document_;
};

}  // namespace

Result<json> parse_strict_json(const std::string& text, const std::string& name) {
  if (text.size() > kLargestJson)
    return usage(name + ": " + std::to_string(text.size()) + " bytes, at most " + std::to_string(kLargestJson) +
                 " are read");
  Builder builder(name);
  if (!json::sax_parse(text, &builder)) return usage(builder.problem());
  return builder.take_document();
}

std::string pointer_token(const std::string& key) {
  std::string token;
  for (const char c : key) {
    if (c == '~')
      token += "~0";
    else if (c == '/')
      token += "~1";
    else
      token += c;
  }
  return token;
}

std::string folded(const std::string& key) {
  static const std::string kLongS = "\u017F", kKelvin = "\u212A";
  std::string result;
  for (std::size_t at = 0; at < key.size(); ++at) {
    if (key.compare(at, kLongS.size(), kLongS) == 0) {
      result += 's';
      at += kLongS.size() - 1;
    } else if (key.compare(at, kKelvin.size(), kKelvin) == 0) {
      result += 'k';
      at += kKelvin.size() - 1;
    } else {
      result += key[at] >= 'A' && key[at] <= 'Z' ? static_cast<char>(key[at] - 'A' + 'a') : key[at];
    }
  }
  return result;
}

}  // namespace benchsand
