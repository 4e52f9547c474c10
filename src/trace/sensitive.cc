#include "trace/sensitive.h"

#include <algorithm>
#include <array>

#include "sys/files.h"

namespace belljar::trace {
namespace {

constexpr auto kSecretsInHome = std::to_array<std::string_view>({".ssh",
                                                                 ".gnupg",
                                                                 ".aws",
                                                                 ".azure",
                                                                 ".kube",
                                                                 ".docker",
                                                                 ".netrc",
                                                                 ".config/gcloud",
                                                                 ".config/gh",
                                                                 ".config/op",
                                                                 ".pypirc",
                                                                 ".npmrc",
                                                                 ".git-credentials",
                                                                 ".pgpass",
                                                                 ".my.cnf",
                                                                 ".vault-token",
                                                                 ".password-store",
                                                                 ".terraform.d",
                                                                 ".mozilla",
                                                                 ".config/chromium",
                                                                 ".config/google-chrome",
                                                                 ".local/share/keyrings",
                                                                 ".cargo/credentials.toml",
                                                                 ".cargo/credentials",
                                                                 ".bash_history",
                                                                 ".zsh_history",
                                                                 ".claude",
                                                                 ".codex",
                                                                 ".config/anthropic"});
constexpr auto kSecrets = std::to_array<std::string_view>(
    {"/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d",
     "/etc/ssl/private", "/etc/ssh", "/etc/krb5.keytab", "/etc/kubernetes", "/var/lib/docker", "/var/run/docker.sock",
     "/run/docker.sock", "/run/secrets", "/var/run/secrets", "/run/containerd", "/run/user", "/root"});
constexpr auto kBroad = std::to_array<std::string_view>(
    {"/",      "/home", "/root", "/etc", "/var",  "/var/lib", "/var/tmp", "/tmp",  "/run", "/opt",   "/srv",    "/mnt",
     "/media", "/proc", "/sys",  "/dev", "/boot", "/usr",     "/bin",     "/sbin", "/lib", "/lib64", "/dev/shm"});

bool WithinAny(std::string_view path, auto&& list) {
  return std::ranges::any_of(list, [&](std::string_view one) { return sys::IsWithin(path, one); });
}

}  // namespace

bool HoldsSecrets(std::string_view path, std::string_view home) {
  if (home.size() > 1) {
    if (sys::IsWithin(path, home)) {
      return std::ranges::any_of(kSecretsInHome, [&](std::string_view name) {
        return sys::IsWithin(path, std::string(home) + "/" + std::string(name));
      });
    }
  }
  return WithinAny(path, kSecrets);
}

bool SecretsBelow(std::string_view path, std::string_view home) {
  const auto lies_there = [&](const std::string& secret) {
    return sys::IsWithin(secret, path) && sys::LinkStatus(secret).kind != sys::FileKind::kAbsent;
  };
  const bool at_home = home.size() > 1 && std::ranges::any_of(kSecretsInHome, [&](std::string_view name) {
                         return lies_there(std::string(home) + "/" + std::string(name));
                       });
  return at_home || std::ranges::any_of(kSecrets, [&](std::string_view name) { return lies_there(std::string(name)); });
}

bool IsTooBroad(std::string_view path, std::string_view home) {
  if (std::ranges::find(kBroad, path) != kBroad.end()) return true;
  if (home.size() > 1 && sys::IsWithin(home, path)) return true;  // The home itself and all above it.
  // Anybody's home directory.
  return path.starts_with("/home/") && path.find('/', sizeof("/home/") - 1) == std::string_view::npos;
}

bool IsKernelMade(std::string_view path) {
  return WithinAny(path, std::to_array<std::string_view>({"/proc", "/sys", "/dev"}));
}

bool IsSystem(std::string_view path) {
  return WithinAny(path, std::to_array<std::string_view>(
                             {"/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32", "/libx32", "/etc", "/boot"}));
}

std::string HomeOf(const Caller& caller) {
  const std::string home = caller.Variable("HOME").value_or("");
  if (!home.starts_with('/')) return {};
  return sys::RealPath(home).value_or(home);
}

}  // namespace belljar::trace
