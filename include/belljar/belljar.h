// belljar/belljar.h: all of Belljar in one include.
//
//   auto policy = belljar::Policy::Profile("tool").Memory("256M");
//   auto engine = belljar::Engine::Open();
//   auto result = engine->Run(policy, {"python3", "-"}, belljar::Stdin("print(6*7)"));
#pragma once

#include <belljar/caller.h>           // IWYU pragma: export
#include <belljar/channel.h>          // IWYU pragma: export
#include <belljar/engine.h>           // IWYU pragma: export
#include <belljar/error.h>            // IWYU pragma: export
#include <belljar/level.h>            // IWYU pragma: export
#include <belljar/live_sandbox.h>     // IWYU pragma: export
#include <belljar/policy.h>           // IWYU pragma: export
#include <belljar/result.h>           // IWYU pragma: export
#include <belljar/run.h>              // IWYU pragma: export
#include <belljar/running_command.h>  // IWYU pragma: export
#include <belljar/version.h>          // IWYU pragma: export
