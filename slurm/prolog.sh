#!/bin/bash -p
# Measures the GPUs of a job on this node before the job starts. Setting for slurm.conf:
#
#   Prolog=/usr/share/gpumemtopo/slurm/prolog.sh    BatchStartTimeout=90
#
# Returns 1 if the node is to be drained or a GPU could not be measured: Slurm then drains the node and requeues the job. It calls
# no scontrol, and ends within 60 s whatever the driver does. A job without GPUs is not delayed. A user skips it with
# --comment=gpumemtopo=skip, unless the site forbids that. health.sh does the work and explains the settings.
PATH=/usr/bin:/bin
exec "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/health.sh" prolog
