// trace/sensitive.h: places that no grant is proposed for, because they are whole worlds, or hold secrets.
#pragma once

#include <string>
#include <string_view>

#include <belljar/caller.h>

namespace belljar::trace {

/// Holds keys, passwords or tokens, as ~/.ssh does; `home` is the caller's.
bool HoldsSecrets(std::string_view path, std::string_view home);

/// Something that is there below it does, or it itself.
bool SecretsBelow(std::string_view path, std::string_view home);

/// Too much to grant as a whole: /, /home, /etc, the caller's home directory …
bool IsTooBroad(std::string_view path, std::string_view home);

/// The sandbox makes these itself; nothing of the host's can be put there.
bool IsKernelMade(std::string_view path);

/// The system's own files, which no policy should make writable.
bool IsSystem(std::string_view path);

/// The caller's home directory from its environment; empty when there is none.
std::string HomeOf(const Caller& caller);

}  // namespace belljar::trace
