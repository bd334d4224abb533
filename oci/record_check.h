// Whether a record's verdict can follow from the evidence that stands in the same record. A digest finds accidents; this finds a
// record that somebody wrote or changed and gave a digest of its own, as far as that shows. It is no second judgement: what a
// wall expected is taken from the record too.
#pragma once

#include <nlohmann/json.hpp>

#include "oci/result.h"

namespace benchsand {

// Kind usage: what does not follow. May throw nlohmann's exceptions for a document that has not the form of a record.
Result<void> check_record(const nlohmann::json& record);

}  // namespace benchsand
