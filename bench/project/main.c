#include "project.h"

#include <stdio.h>

int main(void) {
  const char* text = "a bell jar keeps what is inside it inside";
  struct table table = {0};
  table_put(&table, hash_text(text), (int)count_words(text));
  struct list* head = NULL;
  int values[] = {5, 3, 9, 1};
  sort_ints(values, 4);
  for (int i = 0; i < 4; ++i) head = list_push(head, values[i]);
  const int good = table_get(&table, hash_text(text)) == 9 && head->value == 9;
  list_free(head);
  return good ? 0 : 1;
}
