# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# For the tests of MPI and OpenSHMEM programs, which source it: Debian's Open MPI over
# only rc_varuna, with one or more ranks on each host of an emulated fabric.

. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_fabric.sh"

ucx_defaults
export UCX_TLS=rc_varuna,self UCX_LOG_LEVEL=info
# Print the stack of an abort, too
export UCX_ERROR_SIGNALS=SIGILL,SIGSEGV,SIGBUS,SIGFPE,SIGABRT
nic_gives_up 20ms 3
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# By default Open MPI's ucx components accept only known transports and devices. There
# are more ranks than processors, so ranks yield
mpi=(--oversubscribe --mca pml ucx --mca osc ucx --mca spml ucx --mca atomic ucx
     --mca opal_common_ucx_tls any --mca opal_common_ucx_devices any
     --mca btl self --mca mpi_yield_when_idle 1)

mpirun=mpirun
mpi_wrapper=() # A command that runs the program that is appended to it

# launch HOSTS RANKS PROGRAM ARGUMENT...: runs RANKS ranks on each host; the output is
# in job.log. Each host is an application context of mpirun, and -x sets a variable in
# only one context
launch() {
    local hosts=$1 ranks=$2 host args=()
    shift 2
    for ((host = 0; host < hosts; ++host)); do
        [ $host -eq 0 ] || args+=(:)
        args+=(-np "$ranks" -x SHMEM_SYMMETRIC_SIZE=8M
               "$emu" exec -n "$fabric" $host -- "$run" "${mpi_wrapper[@]}" "$@")
    done
    timeout "${mpi_timeout:-600}" "$mpirun" "${mpi[@]}" "${args[@]}" \
        >job.log 2>&1 </dev/null
}
