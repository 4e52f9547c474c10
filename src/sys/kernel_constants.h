/* sys/kernel_constants.h: kernel numbers newer than the headers Belljar is built with.
 *
 * Each is the kernel's stable ABI; whether the running kernel knows it is found out by trying. Plain C preprocessor
 * only, so that the child side may include it. */
#pragma once

// NOLINTBEGIN(modernize-macro-to-enum): as the kernel's own headers have them, for C and for 64 bits alike

/* unshare and clone3; clone(2) has its exit signal in that bit. */
#define BELLJAR_CLONE_NEWTIME 0x00000080ULL

/* Landlock: filesystem rights by the ABI that brought them; ABI 1 has bits 0 to 12. */
#define BELLJAR_LANDLOCK_FS_ABI1 0x1fffULL
#define BELLJAR_LANDLOCK_FS_REFER (1ULL << 13)     /* ABI 2, Linux 5.19 */
#define BELLJAR_LANDLOCK_FS_TRUNCATE (1ULL << 14)  /* ABI 3, Linux 6.2 */
#define BELLJAR_LANDLOCK_FS_IOCTL_DEV (1ULL << 15) /* ABI 5, Linux 6.10 */
#define BELLJAR_LANDLOCK_NET_BIND_TCP (1ULL << 0)  /* ABI 4, Linux 6.7 */
#define BELLJAR_LANDLOCK_NET_CONNECT_TCP (1ULL << 1)
#define BELLJAR_LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET (1ULL << 0) /* ABI 6, Linux 6.12 */
#define BELLJAR_LANDLOCK_SCOPE_SIGNAL (1ULL << 1)
/* ABI 7, Linux 6.15: flags of landlock_restrict_self */
#define BELLJAR_LANDLOCK_RESTRICT_LOG_SAME_EXEC_OFF (1U << 0)
#define BELLJAR_LANDLOCK_RESTRICT_LOG_NEW_EXEC_ON (1U << 1)
#define BELLJAR_LANDLOCK_RESTRICT_LOG_SUBDOMAINS_OFF (1U << 2)

/* seccomp: Linux 5.19 */
#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

// NOLINTEND(modernize-macro-to-enum)
