#!/bin/sh
# What Ironic asks of open-iscsi, done by QEMU's initiator: one session at a time, whose disk is a loop device with the
# names that udev would give it.
set -eu

state=$(dirname "$0")/../session
names=/dev/disk/by-path

do=nothing
while [ $# -gt 0 ]; do
    case $1 in
    -m) [ "$2" = discovery ] && do=discover; shift ;;
    -p) portal=$2; shift ;;
    -T) target=$2; shift ;;
    --login) do=login ;;
    --logout) do=logout ;;
    -S) do=list ;;
    -t | -o) shift ;;
    esac
    shift
done

case $do in
discover)
    iscsi-ls "iscsi://$portal"
    ;;
login)
    mkdir "$state"
    : >"$state/disk"
    name=$names/ip-$portal-iscsi-$target-lun-1
    echo "$name" >"$state/name"
    qemu-storage-daemon --daemonize --pidfile "$state/process" \
        --blockdev "driver=iscsi,node-name=disk,transport=tcp,portal=$portal,target=$target,lun=1" \
        --export "type=fuse,id=file,node-name=disk,mountpoint=$state/disk,writable=on"
    device=$(losetup --find --show --partscan "$state/disk")
    echo "$device" >"$state/device"
    mkdir -p "$names"
    ln -s "$device" "$name"
    for partition in 1 2 3 4; do ln -s "${device}p$partition" "$name-part$partition"; done
    ;;
list)
    # With the target's name in it.
    cat "$state/name"
    ;;
logout)
    rm -f "$(cat "$state/name")" "$(cat "$state/name")"-part[1-4]
    [ ! -e "$state/device" ] || losetup --detach "$(cat "$state/device")"
    if [ -e "$state/process" ]; then
        # It writes out what it holds before it ends.
        process=$(cat "$state/process")
        kill "$process"
        while kill -0 "$process" 2>/dev/null; do sleep 0.1; done
    fi
    rm -r "$state"
    ;;
esac
