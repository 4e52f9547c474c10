// Runs a command in a sandbox and prints what it said.
#include <belljar/belljar.h>

#include <iostream>

int main() {
  auto engine = belljar::Engine::Open();
  if (!engine) return std::cerr << engine.error().Text() << '\n', 1;
  auto result = engine->Run(belljar::Policy::Profile("tool"), {"sh", "-c", "echo six times seven is $((6 * 7))"});
  if (!result) return std::cerr << result.error().Text() << '\n', 1;
  std::cout << belljar::Name(result->verdict) << ": " << result->out.data << result->message;
}
