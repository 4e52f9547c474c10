# What ./belljar and ./test share: installing missing packages, and building a preset quietly. Sourced by POSIX sh and
# bash; needs $root, the checkout. Everything it says goes to standard error.

say() { printf 'belljar: %s\n' "$*" >&2; }
die() { say "$*"; exit 125; }

# packages SECTION…: the names that tools/packages.txt lists there.
packages() {
  for section in "$@"; do
    sed -n "/^\[$section\]/,/^\[/p" "$root/tools/packages.txt"
  done | sed 's/[[:space:]]*#.*//; /^\[/d; /^$/d'
}

# missing SECTION…: those of them that are not installed. An entry "package:command" is content with a command of that
# name that came under /usr in some other way.
missing() {
  # shellcheck disable=SC2046
  installed=$(dpkg-query -W -f ' ${Package}:${db:Status-Status} ' $(packages "$@" | sed 's/:.*//') 2>/dev/null)
  for entry in $(packages "$@"); do
    package=${entry%%:*}
    case $installed in *" $package:installed "*) continue ;; esac
    if [ "$package" != "$entry" ]; then
      case $(readlink -f "$(command -v "${entry#*:}")") in /usr/*) continue ;; esac
    fi
    printf '%s ' "$package"
  done
}

# need SECTION…: installs what is missing, as root or by sudo. On a system without dpkg it trusts that the same things
# came some other way; the configure step then names what it can't find.
need() {
  command -v dpkg-query >/dev/null 2>&1 || return 0
  wanted=$(missing "$@")
  [ -n "$wanted" ] || return 0
  as_root=
  if [ "$(id -u)" -ne 0 ]; then
    as_root=sudo
    if ! command -v sudo >/dev/null 2>&1 || ! { sudo -n true 2>/dev/null || [ -t 0 ]; }; then
      say "these Debian packages are missing and installing them needs root. Run this once, then try again:"
      printf '  apt-get install --no-install-recommends %s\n' "$wanted" >&2
      exit 125
    fi
  fi
  say "installing Debian packages: $wanted"
  apt_install "$as_root" "$wanted" || { apt_update "$as_root" && apt_install "$as_root" "$wanted"; } || {
    cat "$apt_log" >&2
    rm -f "$apt_log"
    die "apt-get could not install them. Fix what it says above, or run: apt-get install $wanted"
  }
  rm -f "$apt_log"
}

# The first try uses the package lists as they are: often they are recent enough, and refreshing them takes a while.
apt_install() {
  apt_log=${apt_log:-$(mktemp)}
  # $2 is a list of words.
  # shellcheck disable=SC2086
  $1 env DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o DPkg::Lock::Timeout=300 install --no-install-recommends $2 \
    >"$apt_log" 2>&1 </dev/null
}
apt_update() { $1 apt-get -qq update >>"$apt_log" 2>&1 </dev/null; }

# build PRESET DIR: configures when needed and builds; one line of progress at a terminal, else a line now and then.
# The whole log stays in DIR/build.log.
build() {
  preset=$1 dir=$2
  log=$dir/build.log
  started=$(date +%s)
  if [ ! -e "$dir/build.ninja" ]; then
    cmake --preset "$preset" -S "$root" -B "$dir" >"$log" 2>&1 </dev/null || {
      cat "$log" >&2
      die "configuring failed (above). Its log: $log"
    }
  fi
  rm -f "$dir/.failed"
  { NINJA_STATUS='%p %f/%t ' ninja -C "$dir" </dev/null 2>&1 || touch "$dir/.failed"; } | tee "$log" | progress "$preset"
  if [ -e "$dir/.failed" ]; then
    grep -v '^ *[0-9]*% ' "$log" | head -n 60 >&2
    die "building failed (above). Its whole log: $log"
  fi
  took=$(($(date +%s) - started))
  if grep -q '^ *[0-9]*% ' "$log"; then say "built the $preset preset in $took s"; fi
}

# Reads ninja's output; each line of it starts with a percentage.
progress() {
  shown=0
  while IFS= read -r line; do
    percent=${line%%%*}
    case $percent in *[!\ 0-9]* | '') continue ;; esac
    percent=$((percent))
    if [ -t 2 ]; then
      printf '\rbelljar: building the %s preset: %d%% ' "$1" "$percent" >&2
      shown=$percent
    elif [ "$percent" -ge $((shown + 25)) ] && [ "$percent" -lt 100 ]; then
      shown=$((percent / 25 * 25))
      # A rebuild of a few files is done before anybody wonders.
      [ $(($(date +%s) - started)) -lt 5 ] || say "building the $1 preset: $shown%"
    fi
  done
  if [ -t 2 ] && [ "$shown" -gt 0 ]; then printf '\r\033[K' >&2; fi
}
