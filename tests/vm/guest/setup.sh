# Process 1 of the virtual machine: cgroups, user and kernel settings as asked for, then the command, then the report.
# Runs under busybox, whose shell also reaps what the command leaves behind.
export PATH=/run/vm/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
mkdir /run/vm/bin && /run/vm/busybox --install -s /run/vm/bin
. /run/vm/settings
. /run/vm/cgroups.sh

port() {
  for entry in /sys/class/virtio-ports/*; do
    [ "$(cat "$entry/name")" = "$1" ] && echo "/dev/${entry##*/}"
  done
}

status_port=$(port status)
exec 9>"$status_port"
note() { echo "note $*" >&9; }
finish() {
  echo "exit $1" >&9
  # The host ends the machine once all output has arrived; this is for a host that went away.
  sleep 20
  reboot -f
}

set_up_system() {
  mkdir -p /dev/pts /dev/shm /run/lock
  mount -t devpts -o gid=5,mode=620,ptmxmode=666 devpts /dev/pts
  mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs /dev/shm
  mount -t mqueue mqueue /dev/mqueue 2>/dev/null || { mkdir /dev/mqueue && mount -t mqueue mqueue /dev/mqueue; }
  ln -sf /proc/self/fd /dev/fd
  for n in 0:stdin 1:stdout 2:stderr; do ln -sf "/proc/self/fd/${n%%:*}" "/dev/${n##*:}"; done
  mount -t securityfs securityfs /sys/kernel/security
  mount --make-rshared /
  hostname belljar-vm
  ip link set lo up
  # So that what the kernel loads on demand (nftables, overlay…) comes from the booted kernel's own modules.
  mkdir -p /lib/modules
  mount --bind "$VM_MODULES" /lib/modules
  ln -sf ../busybox /run/vm/bin/modprobe
  echo /run/vm/bin/modprobe >/proc/sys/kernel/modprobe
}

set_up_userns() {
  case $VM_USERNS in
    on) value=1 ;;
    root-only) value=0 ;;
    off)
      value=0
      echo 0 >/proc/sys/user/max_user_namespaces
      ;;
  esac
  if [ -e /proc/sys/kernel/unprivileged_userns_clone ]; then
    echo $value >/proc/sys/kernel/unprivileged_userns_clone
  elif [ "$VM_USERNS" = root-only ]; then
    note "this kernel has no unprivileged_userns_clone: --userns root-only cannot be had"
    finish 125
  fi
}

# A name the host does not know becomes a new user with sub-ids, in the writable layer only.
set_up_user() {
  if ! grep -q "^$VM_USER:" /etc/passwd; then
    echo "$VM_USER:x:4242:4242:virtual machine user:/scratch/home/$VM_USER:/bin/sh" >>/etc/passwd
    echo "$VM_USER:x:4242:" >>/etc/group
    echo "$VM_USER:424200000:65536" >>/etc/subuid
    echo "$VM_USER:424200000:65536" >>/etc/subgid
    mkdir -p "/scratch/home/$VM_USER"
    chown 4242:4242 "/scratch/home/$VM_USER"
  fi
  entry=$(grep "^$VM_USER:" /etc/passwd | head -n 1)
  uid=$(echo "$entry" | cut -d: -f3)
  gid=$(echo "$entry" | cut -d: -f4)
  home=$(echo "$entry" | cut -d: -f6)
  mkdir -p "/run/user/$uid"
  chown "$uid:$gid" "/run/user/$uid"
  chmod 700 "/run/user/$uid"
}

# Names every process but kernel threads, process 1 and the relays. Not to be called in $(…): that is a process as well.
leftovers() {
  for folder in /proc/[0-9]*; do
    pid=${folder##*/}
    case " 1 2 $out_relay $err_relay " in *" $pid "*) continue ;; esac
    read -r stat 2>/dev/null <"$folder/stat" || continue
    # The name, in brackets, may itself hold blanks and brackets.
    set -- ${stat##*) }
    state=$1 parent=$2
    case $state:$parent in *:2 | Z:*) continue ;; esac
    # The relays are shells that wait for a program of their own.
    [ "$parent" = "$out_relay" ] || [ "$parent" = "$err_relay" ] && continue
    echo "$pid($(tr '\0' ' ' <"$folder/cmdline" 2>/dev/null | head -c 60))"
  done
}

relay() {
  cat "$1"
  printf '%s' "$VM_END_MARK"
}

run_command() {
  for name in out err; do
    mkfifo -m 600 /run/vm/$name
    chown "$uid:$gid" /run/vm/$name
  done
  relay /run/vm/out >"$(port stdout)" &
  out_relay=$!
  relay /run/vm/err >"$(port stderr)" &
  err_relay=$!
  export VM_UID=$uid VM_GID=$gid VM_HOME=$home
  echo ready >&9
  sh /run/vm/launch.sh </dev/null >/run/vm/out 2>/run/vm/err 9>&- &
  wait $!
  status=$?
  # A process that outlives the command may hold its output open; give it a moment, name it, end it.
  for _ in 1 2 3 4 5; do
    leftovers >/run/vm/left
    [ -s /run/vm/left ] || break
    sleep 0.2
  done
  while read -r process; do
    note "left running: $process"
    kill -9 "${process%%(*}"
  done </run/vm/left
  wait $out_relay $err_relay
}

set_up_system
set_up_userns
set_up_user
set_up_cgroups
run_command
finish $status
