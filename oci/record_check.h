// Whether a record's verdict can follow from the evidence that stands in the same record. A digest finds accidents; this finds a
// record that somebody wrote or changed and gave a digest of its own, as far as that shows. It is no second judgement: what a
// wall expected is taken from the record too.
#pragma once

#include <nlohmann/json.hpp>

#include "oci/result.h"

namespace benchsand {

// Kind usage: what does not follow. May throw nlohmann's exceptions for a document that has not the form of a record.
Result<void> check_record(const nlohmann::json& record);

// How deep brackets stand in each other, at most: the JSON library recurses as deep as a document does.
inline constexpr std::size_t kDeepestRecord = 32;
std::size_t nesting(const std::string& text);

}  // namespace benchsand
