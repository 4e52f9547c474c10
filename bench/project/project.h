#pragma once
#include <stddef.h>
#include <stdint.h>

struct list {
  int value;
  struct list* next;
};
struct list* list_push(struct list* head, int value);
void list_free(struct list* head);

struct table {
  uint32_t keys[256];
  int values[256];
};
void table_put(struct table* table, uint32_t key, int value);
int table_get(const struct table* table, uint32_t key);

uint32_t hash_text(const char* text);
void sort_ints(int* values, size_t count);
size_t count_words(const char* text);
