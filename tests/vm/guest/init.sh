#!/bin/busybox sh
# First program of the virtual machine: mounts the host's tree read-only with a writable layer on top and goes on there.
export PATH=/bin
/bin/busybox --install -s /bin
. /vm/settings

die() {
  echo "belljar-vm: $*" >/dev/console
  reboot -f
}

mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
while read -r module; do insmod "$module" || die "cannot load $module"; done </modules/list

mkdir /host /scratch /tree
mount -t 9p -o trans=virtio,version=9p2000.L,ro,cache=loose,msize=512000 host /host ||
  die "cannot mount the shared tree"
# The writable layer is a disk and not a tmpfs: guests then see a real ext4, and what they write costs no memory.
for _ in 1 2 3 4 5 6 7 8 9 10; do [ -b /dev/vda ] && break; sleep 0.1; done
mount -t ext4 -o noatime /dev/vda /scratch || die "cannot mount the scratch disk"
mkdir -p /scratch/.layer/upper /scratch/.layer/work /scratch/tmp /scratch/home
chmod 700 /scratch/.layer
chmod 1777 /scratch/tmp
mount -t overlay -o lowerdir=/host,upperdir=/scratch/.layer/upper,workdir=/scratch/.layer/work overlay /tree ||
  die "cannot mount the writable layer"

# The shared tree also shows the host's own mounts below these; none of them means anything here.
for kind in proc sysfs devtmpfs; do
  case $kind in proc) at=proc ;; sysfs) at=sys ;; devtmpfs) at=dev ;; esac
  mount -t $kind $kind /tree/$at || die "cannot mount /$at"
done
mount -t tmpfs -o mode=755,nosuid,nodev tmpfs /tree/run
mkdir -p /tree/scratch /tree/run/vm
mount --move /scratch /tree/scratch
cp /vm/* /bin/busybox /tree/run/vm/
umount /proc /sys
exec switch_root /tree /run/vm/busybox sh /run/vm/setup.sh
