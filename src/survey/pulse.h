/* Signs of life between the ranks and rank 0, and when silence means death. */
#ifndef GPUMEMTOPO_SURVEY_PULSE_H
#define GPUMEMTOPO_SURVEY_PULSE_H

/* Seconds between the beats of one rank. Grows with their number, so that rank 0 hears no more than
 * some thousand in a second. */
double pulse_interval_s(int ranks);

/* Silence after which the other side is taken for dead. */
double pulse_silence_s(int ranks);

/* Time as this process lived through it: what it slept away (stopped, swapped out, waiting for a
 * file system) does not count, since it heard nobody then. Zero-initialised: not begun. */
struct pulse_clock {
    double last_s;
    double awake_s;
};

/* Tells the clock that it is now_s; returns awake_s. To be called in every round of the loop. */
double pulse_tick(struct pulse_clock *clock, double now_s);

#endif
