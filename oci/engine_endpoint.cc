#include "oci/engine_endpoint.h"

namespace benchsand {

const char* to_text(ApiKind kind) {
  switch (kind) {
    case ApiKind::docker:
      return "docker";
    case ApiKind::podman:
      return "podman";
  }
  return "?";
}

}  // namespace benchsand
