// Writes BYTES bytes (0: without end) of one kind to a stream: "text" one endless line, "ansi" escape sequences,
// "binary" all byte values, "lines" short lines, "both" to the two streams by turns.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  static char block[65536];
  const long long most = atoll(argv[2]);
  for (size_t i = 0; i < sizeof block; ++i) {
    block[i] = 'x';
    if (strcmp(argv[1], "binary") == 0) block[i] = (char)i;
    if (strcmp(argv[1], "ansi") == 0) block[i] = "\033]0;owned\007\033[2J"[i % 14];
    if (strcmp(argv[1], "lines") == 0) block[i] = i % 40 == 39 ? '\n' : 'x';
  }
  int stream = 1;
  for (long long done = 0; most == 0 || done < most;) {
    const size_t size = most != 0 && most - done < (long long)sizeof block ? (size_t)(most - done) : sizeof block;
    const ssize_t written = write(stream, block, size);
    if (written < 0) return 9;
    done += written;
    if (strcmp(argv[1], "both") == 0) stream = 3 - stream;
  }
  return 0;
}
