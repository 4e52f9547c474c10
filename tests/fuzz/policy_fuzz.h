// tests/fuzz/policy_fuzz.h: what must hold for any text given to a policy reader.
#pragma once

#include <belljar/policy.h>
#include "policy/print.h"
#include "require.h"

namespace belljar::fuzz {

/// A refusal explains itself; a policy that was read can be printed, and the print is read as the same policy.
inline void CheckRead(const Expected<Policy>& policy) {
  if (!policy) {
    Require(!policy.error().message.empty() && policy.error().step.starts_with("input"), "an error says what and where",
            policy.error().Text());
    return;
  }
  Require(!policy->host_network_granted(), "no document grants the host's network", "");
  if (const Expected<void> done = policy->Check(); !done) {
    Require(!done.error().message.empty(), "a contradiction is explained", done.error().Text());
  }
  const std::string text = policy::ToToml(*policy);
  const Expected<Policy> again = Policy::FromToml(text, "again");
  Require(again.has_value(), "printed TOML can be read", again ? text : again.error().Text() + "\n" + text);
  Require(policy::ToToml(*again) == text, "TOML survives a round trip", text);

  std::string json;
  base::JsonWriter writer(json);
  policy::WriteJson(writer, *again);
  const Expected<Policy> third = Policy::FromJson(json, "again");
  Require(third.has_value(), "printed JSON can be read", third ? json : third.error().Text() + "\n" + json);
  Require(policy::ToToml(*third) == text, "JSON survives a round trip", json);
}

}  // namespace belljar::fuzz
