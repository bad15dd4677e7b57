#!/bin/sh
# A hardware manager that kills the agent, as a lack of memory would: at once, or when a disk is being written.

# Sectors that all disks have written so far.
written() {
    cat /sys/block/*/stat | awk '{ sectors += $7 } END { print sectors }'
}

# Starts this program in a session of its own, out of reach of who ends this process group.
leave_behind() {
    rm -f /run/killer-left
    setsid "$0" "$@" </dev/null >/dev/null 2>&1 &
    # Before it has left, it would be ended with this one.
    while ! [ -e /run/killer-left ]; do sleep 0.1; done
}

case $1 in
watch)
    : >/run/killer-left
    while [ "$(written)" = "$3" ]; do sleep 0.2; done
    exec kill -9 "$2"
    ;;
linger)
    : >/run/killer-left
    while :; do sleep 1; done
    ;;
esac

read -r request
case $request in
*'"request":"describe"'*)
    echo '{"result": {"class_name": "KillerManager", "name": "killer", "version": "1"}}'
    ;;
*'"request":"evaluate"'*)
    echo '{"result": {"support": 3}}'
    ;;
*'"request":"list_steps"'*)
    cat <<'END' | tr -d '\n'
{"result": {"steps": [
 {"step": "kill_agent", "interface": "deploy", "priorities": {"clean": 0, "deploy": 0, "service": 0}},
 {"step": "kill_agent_at_next_write", "interface": "deploy", "priorities": {"clean": 0, "deploy": 0, "service": 0}},
 {"step": "count_lingering", "interface": "deploy", "priorities": {"clean": 0, "deploy": 0, "service": 0}}]}}
END
    echo
    ;;
# The step to run is named last; the node's record tells of others.
*'"step":"kill_agent_at_next_write"}')
    leave_behind watch "$PPID" "$(written)"
    echo '{"result": "armed"}'
    ;;
*'"step":"kill_agent"}')
    leave_behind linger
    kill -9 "$PPID"
    sleep 600
    ;;
*'"step":"count_lingering"}')
    # This pattern is not in its own command line.
    count=$(grep -al '[l]inger' /proc/[0-9]*/cmdline | wc -l)
    echo "{\"result\": $count}"
    ;;
*)
    echo '{"error": {"message": "this request is not known"}}'
    ;;
esac
