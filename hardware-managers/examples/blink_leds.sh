#!/bin/sh
# A hardware manager in POSIX shell: one clean step that blinks the disks' locate LEDs.
# Answers are single lines of JSON on standard output; anything else belongs on standard error.
read -r request

case $request in
*'"request":"describe"'*)
    echo '{"result": {"class_name": "LedManager", "name": "leds", "version": "1.0"}}'
    ;;
*'"request":"evaluate"'*)
    echo '{"result": {"support": 3}}'
    ;;
*'"request":"list_steps"'*)
    cat <<'END' | tr -d '\n'
{"result": {"steps": [{"step": "blink_leds", "interface": "management",
 "priorities": {"clean": 0, "service": 0}, "abortable": true, "silence_seconds": 60,
 "arguments": {"times": {"description": "How often to blink", "required": false}}}]}}
END
    echo
    ;;
*'"request":"run_step"'*)
    # Shell has no JSON: take the one number out of the line.
    times=$(echo "$request" | sed -n 's/.*"times": *\([0-9][0-9]*\).*/\1/p')
    done=0
    while [ "$done" -lt "${times:-1}" ]; do
        done=$((done + 1))
        for led in /sys/class/leds/*locate*/brightness; do
            [ -w "$led" ] && { echo 1 >"$led"; echo 0 >"$led"; }
        done
        echo "{\"progress\": {\"text\": \"blinked $done times\"}}"
    done
    echo "{\"result\": {\"blinked\": $done}}"
    ;;
*)
    echo '{"error": {"message": "this request is not known"}}'
    ;;
esac
