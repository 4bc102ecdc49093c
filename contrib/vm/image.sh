#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# usage: contrib/vm/image.sh [-h]
#
# Makes what the virtual machines of contrib/vm/vm.sh boot: Debian's kernel image, which is
# downloaded and unpacked but not installed, and an initramfs of busybox and the few
# modules that a machine with soft-RoCE needs. Its root is this machine's root, read-only.
# Prints the directory that has both, "vmlinuz" and "initramfs". Quick if it is up to date.
#
# Environment:
#   RC_VARUNA_VM_KERNEL   the Debian package of the kernel; default: the one that
#                         linux-image-amd64 depends on

set -euo pipefail
prog=vm
. "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
export PATH=$PATH:/usr/sbin:/sbin

# What the guest loads, in this order; modprobe adds what these depend on
modules=(virtio_pci virtio_net 9p 9pnet_virtio rdma_rxe ib_uverbs rdma_ucm
         sch_netem crc32_generic)

# kernel_package: prints the name of the package that has the kernel
kernel_package() {
    local package=${RC_VARUNA_VM_KERNEL:-}

    [ -n "$package" ] ||
        package=$(apt-cache depends linux-image-amd64 2>/dev/null |
                  awk '/Depends: linux-image-/ {print $2; exit}')
    [ -n "$package" ] ||
        die "apt knows no linux-image-amd64: run apt-get update, or set" \
            "RC_VARUNA_VM_KERNEL to the package of a kernel with soft-RoCE"
    echo "$package"
}

# unpack_kernel PACKAGE DIR: downloads the package, and unpacks it into DIR
unpack_kernel() {
    local package=$1 dir=$2

    mkdir -p "$dir/deb"
    say "downloading $package (70 MB)"
    (cd "$dir/deb" &&
     quietly "$dir/log" apt-get -o APT::Sandbox::User="" download "$package") ||
        die "the package $package cannot be downloaded: run apt-get update, or" \
            "set RC_VARUNA_VM_KERNEL to another package"
    dpkg -x "$dir/deb"/*.deb "$dir/root"
    rm -rf "$dir/deb"
}

# module_files ROOT VERSION: prints the modules' files, each after those it needs
module_files() {
    local root=$1 version=$2 module

    depmod -b "$root" "$version"
    for module in "${modules[@]}"; do
        modprobe -d "$root" -S "$version" --show-depends "$module" |
            sed -n 's/^insmod \([^ ]*\).*/\1/p'
    done | awk '!seen[$0]++'
}

# initramfs ROOT VERSION OUT: makes the archive from which the guest boots
initramfs() {
    local root=$1 version=$2 out=$3 dir i=100 file files

    dir=$(mktemp -d "$out.XXXXXX")
    mkdir -p "$dir"/{bin,proc,sys,dev,root,modules}
    cp "$(command -v busybox)" "$dir/bin/busybox"
    install -m 755 "$top/contrib/vm/guest_init" "$dir/init"
    files=$(module_files "$root" "$version")
    for file in $files; do
        i=$((i + 1))
        cp "$file" "$dir/modules/$i-$(basename "$file")"
    done
    (cd "$dir" && find . | cpio -o -H newc --quiet | gzip -1) >"$out.new"
    rm -rf "$dir"
    mv "$out.new" "$out"
}

make_image() {
    local package=$1 dir=$2 tmp version

    if ! [ -f "$dir/vmlinuz" ]; then
        tmp=$(mktemp -d "$dir.XXXXXX")
        # shellcheck disable=SC2064
        trap "rm -rf '$tmp'" EXIT
        unpack_kernel "$package" "$tmp"
        version=$(cd "$tmp/root/lib/modules" && echo *)
        [ -f "$tmp/root/lib/modules/$version/kernel/drivers/infiniband/sw/rxe/rdma_rxe.ko" ] ||
            die "the kernel of $package has no soft-RoCE (rdma_rxe.ko): set" \
                "RC_VARUNA_VM_KERNEL to another package"
        cp "$tmp/root/boot/vmlinuz-$version" "$tmp/vmlinuz"
        rm -rf "$dir"
        mv "$tmp" "$dir"
        trap - EXIT
    fi
    if [ "$dir/initramfs" -ot "$top/contrib/vm/guest_init" ] ||
       [ "$dir/initramfs" -ot "$top/contrib/vm/image.sh" ]; then
        version=$(cd "$dir/root/lib/modules" && echo *)
        initramfs "$dir/root" "$version" "$dir/initramfs"
    fi
}

case ${1:-} in
'')
    "$top/contrib/setup.sh" --install qemu-system-x86 busybox-static kmod cpio iproute2
    package=$(kernel_package)
    dir=$(deps_dir)/vm-$package
    mkdir -p "$(deps_dir)"
    (flock 9; make_image "$package" "$dir") 9>"$(deps_dir)/vm.lock" || exit 1
    echo "$dir"
    ;;
*)
    [ "$1" = -h ] || [ "$1" = --help ] || exec >&2
    usage
    [ "$1" = -h ] || [ "$1" = --help ] || exit 2
    ;;
esac
