#include "project.h"

void table_put(struct table* table, uint32_t key, int value) {
  uint32_t slot = key % 256;
  while (table->keys[slot] != 0 && table->keys[slot] != key) slot = (slot + 1) % 256;
  table->keys[slot] = key;
  table->values[slot] = value;
}

int table_get(const struct table* table, uint32_t key) {
  uint32_t slot = key % 256;
  while (table->keys[slot] != 0 && table->keys[slot] != key) slot = (slot + 1) % 256;
  return table->keys[slot] == key ? table->values[slot] : -1;
}
