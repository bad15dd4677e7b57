#!/bin/sh
# A hardware manager that looks at its agent while that does something else, and tells on the console what it saw.

case $1 in
watch)
    : >/run/witness-left
    while [ -e "/proc/$2" ]; do
        # What it had at most since the last time, and what it has.
        memory=$(awk '/^VmHWM|^VmRSS/ { printf "%s ", $2 }' "/proc/$2/status")
        echo 5 >"/proc/$2/clear_refs"
        # Established connections at port 9999.
        open=$(cat /proc/net/tcp /proc/net/tcp6 | awk '$2 ~ /:270F$/ && $4 == "01"' | wc -l)
        echo "witness: $memory$open" >/dev/console
        sleep 1
    done
    exit
    ;;
esac

read -r request
case $request in
*'"request":"describe"'*)
    echo '{"result": {"class_name": "WitnessManager", "name": "witness", "version": "1"}}'
    ;;
*'"request":"evaluate"'*)
    echo '{"result": {"support": 3}}'
    ;;
*'"request":"list_steps"'*)
    echo '{"result": {"steps": [{"step": "watch_agent", "interface": "deploy", "priorities": {"deploy": 0}}]}}'
    ;;
*'"step":"watch_agent"'*)
    # In a session of its own, out of reach of who ends this process group.
    setsid "$0" watch "$PPID" </dev/null >/dev/null 2>&1 &
    while ! [ -e /run/witness-left ]; do sleep 0.1; done
    echo '{"result": "watching"}'
    ;;
*)
    echo '{"error": {"message": "this request is not known"}}'
    ;;
esac
