// Images as lists, as references to find, as an engine shows them, and as the heads of tar entries.
#include "oci/image_list.h"

#include <doctest/doctest.h>

#include "oci/report.h"
#include "oci/stored_image.h"
#include "oci/tar_header.h"

using namespace benchsand;
using nlohmann::json;

namespace {

const std::string kA(64, 'a'), kB = "ab" + std::string(62, 'b');

ListedImage image(const std::string& hex, const std::vector<std::string>& names, std::uint64_t used) {
  ListedImage listed{hex, ImageEntry(), used, false};
  listed.entry->digest = "sha256:" + hex;
  listed.entry->names = names;
  listed.entry->bytes = 5 << 20;
  return listed;
}

std::string found(const std::string& wanted) {
  const std::vector<ListedImage> images = {image(kA, {"app:1", "x:1"}, 1), image(kB, {"x:1"}, 2)};
  const auto one = find_image(images, wanted);
  return one ? one->hex : one.error().message;
}

json inspected() {
  return {{"Id", "sha256:" + kA},
          {"RepoDigests", {"example.org/app@sha256:" + kB}},
          {"Os", "linux"},
          {"Architecture", "amd64"},
          {"RootFS", {{"Type", "layers"}, {"Layers", {"sha256:" + kB}}}},
          {"Config",
           {{"Env", {"A=b"}}, {"Entrypoint", {"/app"}}, {"Cmd", nullptr}, {"Volumes", {{"/v", json::object()}}}}}};
}

}  // namespace

TEST_CASE("images are listed with the last used one first") {
  ListedImage broken{kA, {}, 0, false};
  auto in_use = image(kB, {"oci:/x\ny"}, 50);
  in_use.in_use = true;
  CHECK(image_list({broken, image(kA, {}, 9000), in_use}, 9120) ==
        "DIGEST        SIZE     LAST USED      NAMES\n"
        "aaaaaaaaaaaa  5.0 MiB  2 minutes ago  -\n"
        "abbbbbbbbbbb  5.0 MiB  in use         " +
            on_one_line("oci:/x\ny") + "\naaaaaaaaaaaa  ?        2 hours ago    (unreadable; prune removes it)\n");
}

TEST_CASE("sizes and times for people") {
  CHECK(rounded_size(0) == "0 B");
  CHECK(rounded_size(1023) == "1023 B");
  CHECK(rounded_size(1024) == "1.0 KiB");
  CHECK(rounded_size(1536) == "1.5 KiB");
  CHECK(rounded_size((1 << 20) - 1) == "1.0 MiB");
  CHECK(rounded_size(std::uint64_t{3} << 40) == "3.0 TiB");
  CHECK(time_ago(59) == "now");
  CHECK(time_ago(60) == "1 minute ago");
  CHECK(time_ago(7200) == "2 hours ago");
  CHECK(time_ago(86400 * 3) == "3 days ago");
}

TEST_CASE("an image is found by name or by the beginning of its digest") {
  CHECK(found("app:1") == kA);
  CHECK(found("aaaa") == kA);
  CHECK(found("sha256:abbb") == kB);
  CHECK(found("x:1") == "find the image \"x:1\": there are 2: aaaaaaaaaaaa, abbbbbbbbbbb");
  for (const std::string& wanted : std::vector<std::string>{"aaa", "app", "", "sha256:", "bbbb"})
    CHECK(found(wanted) == "find the image \"" + wanted +
                               "\": no unpacked image has this name or a digest that begins so; benchsand image ls "
                               "lists them");
}

TEST_CASE("what an engine says of an image is read, however it leaves things out") {
  const auto docker = parse_stored_image(inspected(), "I");
  REQUIRE(docker);
  CHECK(docker->id == "sha256:" + kA);
  CHECK(docker->digests == std::vector<std::string>{"sha256:" + kB});
  CHECK(docker->config.diff_ids == std::vector<std::string>{"sha256:" + kB});
  CHECK(docker->config.entrypoint == std::vector<std::string>{"/app"});
  CHECK(docker->config.command.empty());
  CHECK(docker->config.volumes == std::vector<std::string>{"/v"});
  CHECK_FALSE(docker->is_oci);
  json podman = inspected();
  podman["Id"] = kA;
  podman["ManifestType"] = "application/vnd.oci.image.manifest.v1+json";
  podman["Config"] = nullptr;
  CHECK(parse_stored_image(podman, "I")->id == "sha256:" + kA);
  CHECK(parse_stored_image(podman, "I")->is_oci);
  for (const json& lie : {json(), json::array(), json{{"Id", 1}}, json{{"Id", "../x"}}, json::object()})
    CHECK(parse_stored_image(lie, "I").error().message.starts_with("I: the answer "));
}

TEST_CASE("a digest is one of the image's, or the image is refused") {
  const auto image = *parse_stored_image(inspected(), "I");
  const std::string other = "sha256:" + std::string(64, '0');
  CHECK(check_stored_digest(image, *parse_image_ref("app"), "X"));
  CHECK(check_stored_digest(image, *parse_image_ref("app@sha256:" + kA), "X"));
  CHECK(check_stored_digest(image, *parse_image_ref("app@sha256:" + kB), "X"));
  const auto refused = check_stored_digest(image, *parse_image_ref("app@" + other), "X");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().kind == Error::Kind::usage);
  CHECK(refused.error().message ==
        "X has another digest: expected " + other + ", found sha256:" + kA + ", sha256:" + kB);
}

TEST_CASE(
    "an engine is asked by name and digest, then by the digest alone, and last by a name that may have moved on") {
  const std::string digest = "sha256:" + kA;
  const auto names = [](const std::string& text) { return lookup_names(*parse_image_ref(text)); };
  using List = std::vector<std::string>;
  CHECK(names("app") == List{"app:latest"});
  CHECK(names(digest) == List{digest});
  CHECK(names("h:5000/app@" + digest) == List{"h:5000/app@" + digest, digest, "h:5000/app"});
  CHECK(names("h:5000/app:1@" + digest) == List{"h:5000/app@" + digest, digest, "h:5000/app:1"});
}

TEST_CASE("the head of a tar entry holds names and numbers of any size") {
  TarHeader header{"dir", '5', "", 040755, 65534, 65534, 0, 1'000'000'000};
  CHECK(tar_header(header).size() == 512);
  CHECK(tar_header(header).starts_with(std::string("dir/\0", 5)));
  CHECK(tar_header(header).substr(100, 8) == std::string("0000755\0", 8));
  header.name = std::string(101, 'n');
  header.type = '2';
  header.link = std::string(200, 'l');
  CHECK(tar_header(header).size() == 5 * 512);
  header = {"f", '0', "", 0, 4'000'000'000, 0, std::uint64_t{9} << 30, -5};
  const std::string large = tar_header(header);
  CHECK(large[124] == static_cast<char>(0x80));
  CHECK(large[108] == static_cast<char>(0x80));
  CHECK(large.substr(136, 12) == std::string("00000000000\0", 12));
  CHECK(tar_padding(0).empty());
  CHECK(tar_padding(512).empty());
  CHECK(tar_padding(513).size() == 511);
}
