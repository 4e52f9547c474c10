#include "project.h"

#include <stdlib.h>

static int compare(const void* a, const void* b) {
  const int left = *(const int*)a;
  const int right = *(const int*)b;
  return (left > right) - (left < right);
}

void sort_ints(int* values, size_t count) { qsort(values, count, sizeof *values, compare); }
