/* Which surveys of a long history are worth keeping. */
#include "report/history/history_thin.h"

#include <time.h>

#include "report/history/history_events.h"

static const int64_t day_s = 86400;

/* Of a GPU in a survey: whether something is wrong with it, and what. */
static int trouble(const struct history_sighting *sighting)
{
    return sighting->state == HISTORY_OUTLIER      ? 1 + (int)sighting->kind
           : sighting->state == HISTORY_UNMEASURED ? -1
                                                   : 0;
}

/* A result that was only repeated has the trouble of the one before it. */
static void keep_troubles(const struct history *history, bool *keep)
{
    for (size_t g = 0; g < history->gpu_count; g++) {
        const struct history_gpu *gpu = &history->gpus[g];
        int last = trouble(&gpu->sightings[0]);
        for (size_t i = 1; i < gpu->count; i++) {
            if (gpu->sightings[i].state == HISTORY_SAME)
                continue;
            int now = trouble(&gpu->sightings[i]);
            if (now != last)
                keep[gpu->sightings[i - 1].survey] = keep[gpu->sightings[i].survey] = true;
            last = now;
        }
    }
}

static void keep_events(const struct history *history, bool *keep)
{
    for (size_t i = 0; i < history->event_count; i++) {
        const uint32_t survey = history->events[i].survey;
        keep[survey] = true;
        if (survey)
            keep[survey - 1] = true;
    }
}

/* Surveys with the same number are of the same week, or month. */
static int64_t week_of(int64_t time_s)
{
    return (time_s / day_s + 3) / 7; /* 1970-01-01 was a Thursday */
}

static int64_t month_of(int64_t time_s)
{
    struct tm parts = {0};
    const time_t time = (time_t)time_s;
    gmtime_r(&time, &parts);
    return (int64_t)parts.tm_year * 12 + parts.tm_mon;
}

void history_thin(const struct history *history, bool *out_keep)
{
    const size_t count = history->survey_count;
    int64_t week = INT64_MIN, month = INT64_MIN;
    for (size_t i = 0; i < count; i++) {
        const int64_t time_s = history->surveys[i].time_s;
        const int64_t age_s = history->surveys[count - 1].time_s - time_s;
        const bool recent = age_s <= HISTORY_THIN_DAYS * day_s;
        const bool weekly = age_s <= (HISTORY_THIN_DAYS + 7 * HISTORY_THIN_WEEKS) * day_s;
        const bool begins = weekly ? week_of(time_s) != week : month_of(time_s) != month;
        out_keep[i] = !i || i == count - 1 || recent || begins;
        if (out_keep[i]) {
            week = week_of(time_s);
            month = month_of(time_s);
        }
    }
    keep_troubles(history, out_keep);
    keep_events(history, out_keep);
}
