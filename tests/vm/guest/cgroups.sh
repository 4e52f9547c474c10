# The cgroup trees machines really have. Leaves in $cgroup_leaves the directories the command is to run in.
cgroup_root=/sys/fs/cgroup
cgroup_leaves=

set_up_cgroups() {
  case $VM_CGROUP in
    none) ;;
    v2)
      mount -t cgroup2 -o nsdelegate cgroup2 $cgroup_root
      set_up_v2 $cgroup_root
      ;;
    v1)
      mount -t tmpfs -o mode=755 tmpfs $cgroup_root
      mount_v1 joined
      ;;
    hybrid)
      mount -t tmpfs -o mode=755 tmpfs $cgroup_root
      mount_v1 apart
      mkdir $cgroup_root/unified
      mount -t cgroup2 -o nsdelegate cgroup2 $cgroup_root/unified
      set_up_v2 $cgroup_root/unified
      ;;
  esac
  for leaf in $cgroup_leaves; do echo "$leaf"; done >/run/vm/cgroup_leaves
}

# The layout of systemd: a service for root, the user's own manager for a user with delegation, a login session without.
set_up_v2() {
  top=$1
  mkdir $top/init.scope
  echo $$ >$top/init.scope/cgroup.procs
  if [ "$uid" = 0 ]; then
    path=system.slice/vm-test.service
    owned=
  elif [ "$VM_DELEGATE" = on ]; then
    path=user.slice/user-$uid.slice/user@$uid.service/app.slice/vm-test.scope
    owned="user@$uid.service app.slice vm-test.scope"
  else
    path=user.slice/user-$uid.slice/session-1.scope
    owned=
  fi
  at=$top
  for part in $(echo $path | tr / ' '); do
    for controller in $VM_CONTROLLERS; do
      # A controller that a v1 hierarchy holds is not there to be enabled.
      grep -qw $controller $at/cgroup.controllers && echo +$controller >$at/cgroup.subtree_control
    done
    at=$at/$part
    mkdir -p $at
    case " $owned " in *" $part "*) own_v2 $at ;; esac
  done
  cgroup_leaves="$cgroup_leaves $at"
}

own_v2() {
  for file in $1 $1/cgroup.procs $1/cgroup.threads $1/cgroup.subtree_control; do chown "$uid:$gid" $file; done
}

# joined: cpu,cpuacct and net_cls,net_prio in one hierarchy each, as systemd does; apart: one hierarchy per controller.
mount_v1() {
  controllers=$(awk '!/^#/ && $4 == 1 { print $1 }' /proc/cgroups)
  if [ "$1" = joined ]; then
    pairs='s/^cpu$/cpu,cpuacct/; /^cpuacct$/d; s/^net_cls$/net_cls,net_prio/; /^net_prio$/d'
    controllers=$(echo "$controllers" | sed "$pairs")
  fi
  for controller in cpu memory pids; do
    # Newer kernels are built without some v1 controllers and then do not list them either.
    echo "$controllers" | grep -qw $controller || note "this kernel has no cgroup v1 controller $controller"
  done
  for controller in $controllers name=systemd; do
    folder=$cgroup_root/${controller#name=}
    mkdir $folder
    options=$controller
    [ $controller = name=systemd ] && options=none,name=systemd
    if ! mount -t cgroup -o $options cgroup $folder 2>/dev/null; then
      note "cannot mount the cgroup v1 controller $controller"
      rmdir $folder
      continue
    fi
    case $controller in
      *,*) for alias in $(echo $controller | tr , ' '); do ln -s $controller $cgroup_root/$alias; done ;;
      cpuset) echo 1 >$folder/cgroup.clone_children ;;
    esac
    mkdir $folder/vm-test
    if [ "$uid" != 0 ] && [ "$VM_DELEGATE" = on ]; then
      for file in $folder/vm-test $folder/vm-test/cgroup.procs $folder/vm-test/tasks; do chown "$uid:$gid" $file; done
    fi
    cgroup_leaves="$cgroup_leaves $folder/vm-test"
  done
}
