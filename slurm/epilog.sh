#!/bin/bash -p
# Measures the GPUs of a job on this node when the job has ended. Setting for slurm.conf:
#
#   Epilog=/usr/share/gpumemtopo/slurm/epilog.sh
#
# Returns 1 if the node is to be drained or a GPU could not be measured, for instance because a process of the job still computes on
# it: Slurm then drains the node. It calls no scontrol, and ends within 60 s whatever the driver does. It cannot be
# skipped. health.sh does the work and explains the settings.
PATH=/usr/bin:/bin
exec "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/health.sh" epilog
