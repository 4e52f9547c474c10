// Threads, exceptions, files and the two libraries: what a compiled program does.
#include <filesystem>
#include <fstream>
#include <future>
#include <iostream>
#include <stdexcept>

#include "work.h"

int main() {
  auto later = std::async(std::launch::async, [] { return Fib(30); });
  std::ofstream("words.txt") << "under glass nothing gets out";
  std::ifstream file("words.txt");
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  try {
    throw std::runtime_error("caught");
  } catch (const std::exception& error) {
    std::cout << "fib " << later.get() << " words " << SplitWords(text).size() << " " << error.what() << "\n";
  }
  return std::filesystem::remove("words.txt") ? 0 : 1;
}
