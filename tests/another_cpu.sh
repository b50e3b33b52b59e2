#!/bin/sh
# Runs a command on a machine whose processor is called otherwise, to show that nothing depends on its name:
#
#   sudo tests/another_cpu.sh "AMD EPYC" .venv/bin/pytest tests/cli
#
# The name is changed in a mount namespace of the command's own.
set -eu

if [ "${ANOTHER_CPU:-}" != "$1" ]; then
    ANOTHER_CPU=$1 exec unshare --mount "$0" "$@"
fi
shift
other=$(mktemp)
trap 'rm -f "$other"' EXIT
awk -v name="$ANOTHER_CPU" '/^model name/ { sub(/:.*/, ": " name) } { print }' /proc/cpuinfo >"$other"
mount --bind "$other" /proc/cpuinfo
"$@"
