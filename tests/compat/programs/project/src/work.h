#pragma once
#ifdef __cplusplus
#include <string>
#include <vector>
std::vector<std::string> SplitWords(const std::string& text);
extern "C" {
#endif
unsigned Fib(unsigned n);
#ifdef __cplusplus
}
#endif
