#include "project.h"

#include <stdlib.h>

struct list* list_push(struct list* head, int value) {
  struct list* made = malloc(sizeof *made);
  if (made == NULL) abort();
  made->value = value;
  made->next = head;
  return made;
}

void list_free(struct list* head) {
  while (head != NULL) {
    struct list* next = head->next;
    free(head);
    head = next;
  }
}
