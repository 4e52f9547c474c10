// The kernel's keys belong to a user, not to a namespace: a guest of the same user would share them with the host.
#define _GNU_SOURCE
#include <linux/keyctl.h>

#include "knock.h"

static enum outcome run_b24_add_key(struct attempt* attempt) {
  // In the keyring of this process alone, gone with it.
  if (syscall(SYS_add_key, "user", "belljar", "x", 1, KEY_SPEC_PROCESS_KEYRING) < 0) return refused(attempt, "add_key");
  return worked(attempt, "bytes kept by the kernel outside any limit");
}
ATTACK(b24_add_key, "B24a", "add-key", "keep bytes in a kernel keyring", "seccomp", 0);

KNOCK(b24_request_key, "B24b", "request-key", "ask for a key, which may start a program of the host", "seccomp", 0,
      SYS_request_key, NOWHERE, NOWHERE, 0, 0);

static enum outcome run_b24_user_keyring(struct attempt* attempt) {
  const long id = syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_USER_KEYRING, 1);
  char buffer[256];
  if (id < 0 || syscall(SYS_keyctl, KEYCTL_DESCRIBE, id, buffer, sizeof buffer) < 0) return refused(attempt, "keyctl");
  return worked(attempt, "the keyring that all processes of this user share");
}
ATTACK(b24_user_keyring, "B24c", "user-keyring", "open the keyring that its user shares with the host", "seccomp", 0);
