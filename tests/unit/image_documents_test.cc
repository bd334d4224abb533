// Documents of images: what is read, and exactly how everything else is refused.
#include "oci/image_documents.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "oci/image_entry.h"
#include "oci/image_notices.h"
#include "oci/image_ref.h"

using namespace benchsand;
using nlohmann::json;

namespace {

const std::string kDigest = "sha256:" + std::string(64, 'a'), kOther = "sha256:" + std::string(64, 'b');
const std::string kManifestType = "application/vnd.oci.image.manifest.v1+json",
                  kIndexType = "application/vnd.oci.image.index.v1+json",
                  kConfigType = "application/vnd.oci.image.config.v1+json",
                  kLayerType = "application/vnd.oci.image.layer.v1.tar+gzip";

json part(const std::string& type, const std::string& digest = kDigest) {
  return {{"mediaType", type}, {"digest", digest}, {"size", 7}};
}
json index_of(const std::vector<json>& entries) {
  return {{"schemaVersion", 2}, {"manifests", entries}};
}
json manifest() {
  return {{"schemaVersion", 2}, {"config", part(kConfigType)}, {"layers", {part(kLayerType)}}};
}
json config() {
  return {{"os", "linux"},
          {"architecture", "amd64"},
          {"created", "2026-01-02"},
          {"rootfs", {{"type", "layers"}, {"diff_ids", {kDigest}}}},
          {"config",
           {{"Env", {"PATH=/x", "A=b"}},
            {"Entrypoint", {"/app"}},
            {"Cmd", nullptr},
            {"User", "1000"},
            {"WorkingDir", "/srv"},
            {"Volumes", {{"/data", json::object()}}}}}};
}

template <class T>
std::string said(const Result<T>& result) {
  if (result) return "ok";
  CHECK(result.error().kind == Error::Kind::usage);
  return result.error().message;
}

// The document with one place of it changed.
json with(json document, const std::string& pointer, const json& value) {
  document[json::json_pointer(pointer)] = value;
  return document;
}
json without(json document, const std::string& key) {
  document.erase(key);
  return document;
}
json named(json entry, const std::string& name) {
  entry["annotations"]["org.opencontainers.image.ref.name"] = name;
  return entry;
}
json for_platform(json entry, const std::string& os, const std::string& architecture) {
  entry["platform"] = {{"os", os}, {"architecture", architecture}};
  return entry;
}

std::string manifest_said(const json& document) {
  return said(parse_image_manifest(document.dump(), "M"));
}
std::string index_said(const json& document) {
  return said(parse_image_index(document.dump(), "I"));
}
std::string config_said(const json& document) {
  return said(parse_image_config(document.dump(), "C"));
}
std::string archive_said(const json& document) {
  return said(parse_archive_manifest(document.dump(), "A"));
}

// The digest that was chosen, or what was said.
std::string chosen(const std::vector<json>& entries, const WantedEntry& wanted) {
  const auto entry = choose_entry(*parse_image_index(index_of(entries).dump(), "I"), wanted, "I");
  return entry ? entry->part.digest : said(entry);
}

}  // namespace

TEST_CASE("a reference is read, and written as it is read back") {
  for (const std::string& text : {std::string("python:latest"), std::string("example.org:5000/team/app:V1"),
                                  "python@" + kDigest, "python:3@" + kDigest, kDigest, std::string("oci:/dir"),
                                  "oci:/dir:v1@" + kDigest, std::string("docker-archive:/a.tar:app:1")}) {
    const auto image = parse_image_ref(text);
    REQUIRE(image);
    CHECK(to_text(*image) == text);
  }
  CHECK(parse_image_ref("oci:/dir:v1@" + kDigest)->path == "/dir");
  CHECK(parse_image_ref("oci:/dir:v1@" + kDigest)->name == "v1");
  CHECK(parse_image_ref("docker-archive:/a:team/app")->name == "team/app:latest");
  CHECK(parse_image_ref("example.org:5000/app")->name == "example.org:5000/app:latest");
  CHECK(said(parse_image_ref(std::string("oci:a\0b", 7))) == "text cannot hold a NUL byte");
}

TEST_CASE("the layout of a directory has a version") {
  CHECK(parse_oci_layout(R"({"imageLayoutVersion": "1.0.0"})", "L").has_value());
  CHECK(said(parse_oci_layout("{}", "L")) == "L: has no imageLayoutVersion");
  CHECK(said(parse_oci_layout(R"({"imageLayoutVersion": "2.0.0"})", "L")) ==
        "L: imageLayoutVersion is \"2.0.0\", and only 1.0.0 is read");
  CHECK(said(parse_oci_layout("[", "L")) == "L: \"/0\": no JSON from byte 2 on");
}

TEST_CASE("an index is read, or refused with what is wrong") {
  const json good = index_of({part(kManifestType)});
  CHECK(index_said(good) == "ok");
  CHECK(index_said(with(good, "/schemaVersion", 1)) == "I: schemaVersion is 1, and only 2 is read");
  CHECK(index_said(without(good, "schemaVersion")) == "I: has no schemaVersion");
  CHECK(index_said(without(good, "manifests")) == "I: has no manifests");
  CHECK(index_said(with(good, "/manifests", 1)) == "I: manifests: a list is due");
  CHECK(index_said(with(good, "/mediaType", kManifestType)) ==
        "I: the media type \"" + kManifestType + "\" is not that of an index");
  CHECK(index_said(with(good, "/manifests/0/digest", "sha512:00")) ==
        "I: manifests[0]: the digest \"sha512:00\" is not sha256: and 64 hexadecimal digits");
  CHECK(index_said(with(good, "/manifests/0/digest", "sha256:" + std::string(64, 'A')))
            .find("is not sha256: and 64 hexadecimal digits") != std::string::npos);
  CHECK(index_said(with(good, "/manifests/0/size", -1)) ==
        "I: manifests[0]: size: an integer that is not negative is due");
  CHECK(index_said(with(good, "/manifests/0/platform", 1)) == "I: platform: an object is due");
  CHECK(index_said(with(good, "/manifests/0/Digest", kOther)) ==
        "I: manifests[0]: has \"Digest\", which some read as digest");
  CHECK(index_said(index_of(std::vector<json>(1001, part(kManifestType)))) ==
        "I: 1001 manifests, at most 1000 are read");
  CHECK(index_said(json::array()) == "I: an object is due");
  CHECK(said(parse_image_index(R"({"schemaVersion": 2, "schemaVersion": 2, "manifests": []})", "I")) ==
        "I: \"/schemaVersion\": the key stands twice");
}

TEST_CASE("of an index the one image for this machine is chosen") {
  const json one = part(kManifestType), two = part(kManifestType, kOther);
  const WantedEntry any{"", "", "amd64"};
  CHECK(chosen({one}, any) == kDigest);
  CHECK(chosen({named(one, "v1"), named(two, "v2")}, {"v2", "", "amd64"}) == kOther);
  CHECK(chosen({named(one, "v1"), named(two, "v2")}, {"", kOther, "amd64"}) == kOther);
  CHECK(chosen({named(one, "v1"), named(one, "v2")}, any) == kDigest);
  CHECK(chosen({for_platform(one, "linux", "arm64"), for_platform(two, "linux", "amd64")}, any) == kOther);
  CHECK(chosen({for_platform(one, "unknown", "unknown"), two}, any) == kOther);
  CHECK(chosen({}, any) == "I: there is no image in it");
  CHECK(chosen({named(one, "v1"), named(two, "v2")}, any) ==
        "I: there are 2 images; say which behind a colon: \"v1\", \"v2\"");
  CHECK(chosen({one, two}, any) == "I: there are 2 images; say which behind a colon, or by its digest behind an @");
  CHECK(chosen({named(one, "v1")}, {"v2", "", "amd64"}) == "I: there is no image \"v2\"; there are \"v1\"");
  CHECK(chosen({one}, {"v2", "", "amd64"}) == "I: there is no image \"v2\"; none has a name there");
  CHECK(chosen({for_platform(one, "linux", "arm64"), for_platform(two, "windows", "amd64")}, any) ==
        "I: there is no image for linux/amd64, only for \"linux/arm64\", \"windows/amd64\"");
  CHECK(chosen({part("text/plain")}, any) ==
        "I: the media type \"text/plain\" is unknown; an image or an index is due");
  CHECK(choose_entry(*parse_image_index(index_of({part(kIndexType)}).dump(), "I"), any, "I")->index);
}

TEST_CASE("a manifest is read, or refused with what is wrong") {
  const auto read = parse_image_manifest(manifest().dump(), "M");
  REQUIRE(read);
  CHECK(read->config.digest == kDigest);
  CHECK(read->layers.size() == 1);
  CHECK(read->layers[0].size == 7);
  CHECK(manifest_said(with(manifest(), "/schemaVersion", 1)) == "M: schemaVersion is 1, and only 2 is read");
  CHECK(manifest_said(without(manifest(), "layers")) == "M: has no layers");
  CHECK(manifest_said(without(manifest(), "config")) == "M: has no config");
  CHECK(manifest_said(with(manifest(), "/mediaType", kIndexType)) ==
        "M: the media type \"" + kIndexType + "\" is not that of an image");
  CHECK(manifest_said(with(manifest(), "/config/mediaType", "application/vnd.oci.empty.v1+json")) ==
        "M: the config has the media type \"application/vnd.oci.empty.v1+json\": this is no image that a container can "
        "have");
  CHECK(manifest_said(with(manifest(), "/layers/0/mediaType", "application/x")) ==
        "M: layers[0]: the media type \"application/x\" is unknown; layers are tar archives, plain or compressed with "
        "gzip or zstd");
  CHECK(manifest_said(with(manifest(), "/Layers", json::array())) == "M: has \"Layers\", which some read as layers");
  CHECK(manifest_said(with(manifest(), "/layers", std::vector<json>(257, part(kLayerType)))) ==
        "M: 257 layers, at most 256 are unpacked");
}

TEST_CASE("a config is read, or refused with what is wrong") {
  const auto read = parse_image_config(config().dump(), "C");
  REQUIRE(read);
  CHECK(read->diff_ids == std::vector<std::string>{kDigest});
  CHECK(read->env == std::vector<std::string>{"PATH=/x", "A=b"});
  CHECK(read->command.empty());
  CHECK(read->volumes == std::vector<std::string>{"/data"});
  CHECK(config_said(without(config(), "config")) == "ok");
  CHECK(config_said(without(config(), "os")) == "C: has no os");
  CHECK(config_said(without(config(), "rootfs")) == "C: has no rootfs");
  CHECK(config_said(with(config(), "/rootfs/type", "other")) ==
        "C: rootfs: the type is \"other\", and only layers are read");
  CHECK(config_said(with(config(), "/rootfs/diff_ids/0", "md5:1")) ==
        "C: rootfs: the diff_id \"md5:1\" is not sha256: and 64 hexadecimal digits");
  CHECK(config_said(with(config(), "/config/Env", "A=b")) == "C: config: Env: a list is due");
  CHECK(config_said(with(config(), "/config/User", 1000)) == "C: config: User: text is due");
  CHECK(config_said(with(config(), "/config/Cmd", {std::string("a\0b", 3)})) == "C: config: Cmd: text is due");
  CHECK(config_said(with(config(), "/config/Volumes", json::array())) == "C: config: Volumes: an object is due");
  CHECK(check_image(*read, 1, "amd64", "X").has_value());
  CHECK(said(check_image(*read, 1, "arm64", "X")) == "X: it is for linux/amd64, and this machine is linux/arm64");
  CHECK(said(check_image(*read, 2, "amd64", "X")) == "X: 2 layers, and the config has digests of 1");
}

TEST_CASE("the manifest of docker save is read, or refused with what is wrong") {
  const json good = {{{"Config", "c.json"}, {"RepoTags", {"app:1"}}, {"Layers", {"l/layer.tar"}}}};
  CHECK(archive_said(good) == "ok");
  CHECK(archive_said(json::object()) == "A: a list is due");
  CHECK(archive_said(with(good, "/0/Layers", nullptr)) == "A: [0]: has no Layers");
  CHECK(archive_said(with(good, "/0/Config", nullptr)) == "A: [0]: has no Config");
  CHECK(archive_said(with(good, "/0/RepoTags", nullptr)) == "ok");
  CHECK(archive_said(with(good, "/0/layers", json::array())) == "A: [0]: has \"layers\", which some read as Layers");
  const std::string hub = std::string("docker.io") + "/";
  const std::vector<ArchivedImage> images = {{"a", {"app:1"}, {}},
                                             {"b", {hub + "library/app:2", "localhost/team:3"}, {}}};
  const auto config_of = [&](const std::vector<ArchivedImage>& list, const std::string& name) {
    const auto image = choose_archived(list, name, "A");
    return image ? image->config : said(image);
  };
  CHECK(config_of(images, "app:1") == "a");
  CHECK(config_of(images, "app:2") == "b");
  CHECK(config_of(images, hub + "app:1") == "a");
  CHECK(config_of(images, "team:3") == "b");
  CHECK(config_of({images[0]}, "") == "a");
  CHECK(config_of({}, "") == "A: there is no image in it");
  CHECK(config_of(images, "").starts_with("A: there are 2 images; say which behind a colon: \"app:1\", "));
  CHECK(config_of({images[0]}, "app:9") == "A: there is no image \"app:9\"; there are \"app:1\"");
}

TEST_CASE("what of an image is not used is told, and nothing else is") {
  const auto image = *parse_image_config(config().dump(), "C");
  Policy policy;
  policy.command = {"/bin/x"};
  policy.env = {"A=c", "PATH=/usr/bin"};
  policy.output = policy.workdir = "/output";
  policy.uid = policy.gid = 65534;
  CHECK(image_notices(image, policy) ==
        std::vector<std::string>{
            "image: its ENTRYPOINT [\"/app\"] and CMD [] are not used: the task's command is",
            "image: its PATH is not used, \"/x\"; a task can say it, env: {PATH: …}, nor is its ENV: \"A\"",
            "image: its USER \"1000\" is not used: the candidate is 65534:65534",
            "image: its WORKDIR \"/srv\" is not used: the run starts in \"/output\"",
            "image: its VOLUME [\"/data\"] is not used: the one writable place is \"/output\""});
  policy.command = {"/app"};
  policy.env = {"A=b", "PATH=/x"};
  policy.workdir = "/srv";
  CHECK(image_notices(image, policy).size() == 2);
  CHECK(image_notices({}, policy).empty());
  CHECK(suggested_command(image) == "command: [\"/app\"]");
  CHECK(suggested_command({}) == "");
}

TEST_CASE("what is kept beside an image is read back, and nothing else is taken for it") {
  ImageEntry entry;
  entry.digest = kDigest;
  entry.names = {"oci:/x"};
  entry.notices = {"n"};
  entry.bytes = 5;
  entry.config = *parse_image_config(config().dump(), "C");
  const std::string text = image_entry_json(entry).dump();
  const auto read = parse_image_entry(text, "E");
  REQUIRE(read);
  CHECK(image_entry_json(*read).dump() == text);
  const json good = json::parse(text);
  for (const auto& [key, value] : good.items()) {
    const auto broken = parse_image_entry(without(good, key).dump(), "E");
    CHECK_FALSE(broken.has_value());
    if (!broken) CHECK(broken.error().message.starts_with("E: it has not the form that benchsand writes: "));
  }
  CHECK_FALSE(parse_image_entry(with(good, "/digest", "x").dump(), "E").has_value());
}
