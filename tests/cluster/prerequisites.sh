#!/bin/sh
# What the tests need on the machine and Python cannot bring: Go to build the cluster, containerd and its kind to run
# pods, buildah and debootstrap to build the images, a real Prometheus, the browser that the HTML report is looked at in,
# and the compiler that torch.compile calls.
set -eu

if ! command -v go >/dev/null; then
    echo "the test cluster is built with Go: install 1.26 or later (a distribution's package is often older)" >&2
    exit 1
fi

missing=""
command -v containerd >/dev/null || missing="$missing containerd"
command -v runc >/dev/null || missing="$missing runc"
command -v ip >/dev/null || missing="$missing iproute2"
command -v nsenter >/dev/null || missing="$missing util-linux"
[ -x /usr/lib/cni/bridge ] || [ -x /opt/cni/bin/bridge ] || missing="$missing containernetworking-plugins"
command -v buildah >/dev/null || missing="$missing buildah"
command -v debootstrap >/dev/null || missing="$missing debootstrap"
command -v promtool >/dev/null || missing="$missing prometheus"
command -v chromium >/dev/null || command -v google-chrome >/dev/null || missing="$missing chromium"
command -v g++ >/dev/null || missing="$missing g++"
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
    apt-get update -qq
    # shellcheck disable=SC2086 # a list of words
    DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends $missing
else
    echo "the tests need (names as in Debian):$missing" >&2
    exit 1
fi
