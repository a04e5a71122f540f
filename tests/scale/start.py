"""Simulates the start of a survey and its gather on simulated clusters: 100 to 10,000 nodes of 8 GPUs.

The output is the table of docs/SCALE.md. Latencies of launchers and of MPI_Init are published figures of others,
extrapolated; what rank 0 needs is measured by the benchmark `gather`. Time passes event by event: every rank has
its own start, every message waits until rank 0 has handled those before it.
"""
import heapq
import random

GPUS_PER_NODE = 8

# Published. Launch: flux-core issue 1469 (2018), one task per node: 0.463 s for 64 and 4.353 s for 1024 nodes, which
# is 0.2 s and 4 ms per node; the same issue has a bad case of 67.7 s for 2048 nodes, 33 ms per node.
LAUNCH_BASE_S, LAUNCH_NODE_S, LAUNCH_BAD_NODE_S = 0.2, (4.353 - 0.463) / (1024 - 64), 67.7 / 2048
# MPI_Init: the page "Job Startup" of MVAPICH has 22 s for 229,376 processes on 3,584 nodes. It grows with the logarithm of
# the processes, as Open MPI's documents ("Reducing startup time") say of the exchange of addresses; fewer processes by
# that rule take longer than in proportion. Bad: five such exchanges, as ompi issue 11166 (2022) counted.
INIT_S, INIT_RANKS, FENCES_BAD = 22.0, 229376, 5
# Assumed, not published: a message between nodes, and 10 Gbit/s Ethernet with TCP at four fifths.
MESSAGE_S, BYTES_PER_S = 50e-6, 1.25e9 * 0.8

# Measured here: `gather` (CPU of rank 0 per result, bytes of a result and of an announcement), docs/SCALE.md (listing
# of the GPUs of a node), 31 runs of `standard` on H200s (2.5 s).
RESULT_S, RESULT_BYTES, ANNOUNCE_S, ANNOUNCE_BYTES = 51e-6, 22700, 10e-6, 300
LISTING_S, MEASURE_S = 10.0, 2.5
BEATS_PER_S, BEAT_S = 2000, 5e-6


def log2(ranks):
    return max(1, (ranks - 1).bit_length())


def serve(arrivals, handle_s, size):
    """Rank 0 takes one message after the other. When the last is done, the longest queue, the longest wait."""
    load = 1 - BEATS_PER_S * BEAT_S  # what heartbeats leave of it
    waiting, free, longest, wait = [], 0.0, 0, 0.0
    for at in sorted(arrivals):
        while waiting and waiting[0] <= at:
            heapq.heappop(waiting)
        free = max(free, at) + max(handle_s / load, size / BYTES_PER_S)
        heapq.heappush(waiting, free)
        longest, wait = max(longest, len(waiting)), max(wait, free - at)
    return free, longest, wait


def survey(nodes, tasks_per_node, bad, rng):
    ranks = nodes * tasks_per_node
    node_s = LAUNCH_BAD_NODE_S if bad else LAUNCH_NODE_S
    # The launcher reaches node after node; each then starts its tasks.
    starts = [LAUNCH_BASE_S + node_s * i + rng.uniform(0, 0.2) for i in range(nodes)]
    launched = max(starts)
    init = INIT_S * log2(ranks) / log2(INIT_RANKS) * (FENCES_BAD if bad else 1)
    begun = launched + init
    listed = [begun + LISTING_S * rng.uniform(0.8, 1.2) + MESSAGE_S for _ in range(ranks)]
    assigned, _, _ = serve(listed, ANNOUNCE_S, ANNOUNCE_BYTES)
    results = [assigned + MESSAGE_S * 2 + MEASURE_S * rng.uniform(0.95, 1.1) for _ in range(nodes * GPUS_PER_NODE)]
    done, longest, wait = serve(results, RESULT_S, RESULT_BYTES)
    patience = 240 + 0.1 * ranks
    silence = 5 + 2 * max(1, ranks / 2000)
    return launched, init, assigned - begun, done - assigned, longest, wait, done, patience, silence


def main():
    rng = random.Random(1)
    print("| nodes | tasks | start | launch | MPI_Init | list | measure, gather | longest queue | longest wait | in all |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    failed = []
    for nodes in (100, 1000, 10000):
        for tasks in (1, 8):
            for bad in (False, True):
                launched, init, listing, gather, longest, wait, done, patience, silence = survey(nodes, tasks, bad, rng)
                ranks = nodes * tasks
                print(f"| {nodes:,} | {ranks:,} | {'bad' if bad else 'good'} | {launched:.1f} s | {init:.1f} s | "
                      f"{listing:.1f} s | {gather:.1f} s | {longest:,} | {wait:.2f} s | {done:.0f} s |")
                if launched + init > patience:
                    failed.append(f"{ranks} ranks: MPI starts after {launched + init:.0f} s, start_timeout_s is {patience:.0f}")
                if wait > silence:
                    failed.append(f"{ranks} ranks: a message waits {wait:.1f} s, a rank is lost after {silence:.0f} s")
    print("\n".join(failed) or "No rank would be lost, and start_timeout_s is long enough in every case.")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
