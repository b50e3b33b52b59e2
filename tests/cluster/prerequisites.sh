#!/bin/sh
# What a node needs on the machine: containerd and its kind to run pods, buildah and debootstrap to build the images.
set -eu

missing=""
command -v containerd >/dev/null || missing="$missing containerd"
command -v runc >/dev/null || missing="$missing runc"
command -v ip >/dev/null || missing="$missing iproute2"
command -v nsenter >/dev/null || missing="$missing util-linux"
[ -x /usr/lib/cni/bridge ] || [ -x /opt/cni/bin/bridge ] || missing="$missing containernetworking-plugins"
command -v buildah >/dev/null || missing="$missing buildah"
command -v debootstrap >/dev/null || missing="$missing debootstrap"
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
    apt-get update -qq
    # shellcheck disable=SC2086 # a list of words
    DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends $missing
else
    echo "the tests need (names as in Debian):$missing" >&2
    exit 1
fi
