// Makes a system call by the 32-bit entry (int80) or with an x32 number (x32) and prints what came back.
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  long result;
  if (strcmp(argv[1], "int80") == 0) {
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(20L) : "memory", "r8", "r9", "r10", "r11");
  } else {
    result = syscall(0x40000000L + 39);
  }
  printf("came back %ld\n", result);
  return result > 0 ? 0 : 9;
}
