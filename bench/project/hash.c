#include "project.h"

uint32_t hash_text(const char* text) {
  uint32_t hash = 2166136261U;
  for (; *text != '\0'; ++text) {
    hash ^= (unsigned char)*text;
    hash *= 16777619U;
  }
  return hash;
}
