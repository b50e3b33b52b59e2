#!/bin/sh
# What Debian has and this machine may lack. `node`: containerd and what it runs pods with. `images`: what builds images.
# prerequisites.sh node|images ...
set -eu

missing=""
wants() { # PACKAGE PROGRAM
    command -v "$2" >/dev/null || missing="$missing $1"
}

purpose=""
for each in "$@"; do
    case $each in
    node)
        purpose="${purpose:+$purpose, and }a Kubernetes node on this machine"
        wants containerd containerd
        wants runc runc
        wants iproute2 ip
        wants util-linux nsenter
        [ -x /usr/lib/cni/bridge ] || wants containernetworking-plugins /opt/cni/bin/bridge
        ;;
    images)
        purpose="${purpose:+$purpose, and }building the images"
        wants buildah buildah
        wants debootstrap debootstrap
        ;;
    *)
        echo "usage: $0 node|images ..." >&2
        exit 2
        ;;
    esac
done
[ -n "$missing" ] || exit 0

if [ "$(uname)" != Linux ]; then
    echo "$purpose: only on Linux" >&2
    exit 1
elif [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
    apt-get update -qq
    # shellcheck disable=SC2086 # a list of words
    DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends $missing
else
    echo "$purpose: this machine lacks$missing (names as in Debian); root on Debian gets them installed" >&2
    exit 1
fi
