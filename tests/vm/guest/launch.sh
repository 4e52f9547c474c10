# Becomes the command: joins its cgroups while still root, then drops to the user.
. /run/vm/settings
while read -r leaf; do
  # Zero means the writer itself.
  echo 0 >"$leaf/cgroup.procs" || exit 125
done </run/vm/cgroup_leaves
export HOME="$VM_HOME" USER="$VM_USER" LOGNAME="$VM_USER" XDG_RUNTIME_DIR="/run/user/$VM_UID"
unset VM_HOME VM_MODULES VM_END_MARK
if [ "$VM_UID" = 0 ]; then
  exec /run/vm/busybox sh /run/vm/job.sh
fi
exec /usr/bin/setpriv --reuid="$VM_UID" --regid="$VM_GID" --init-groups /run/vm/busybox sh /run/vm/job.sh
