/* Which surveys of a long history are worth keeping. */
#ifndef GPUMEMTOPO_REPORT_HISTORY_HISTORY_THIN_H
#define GPUMEMTOPO_REPORT_HISTORY_HISTORY_THIN_H

#include "report/history/history.h"

/* All of the last days count, then one of each week, then one of each month. Time counts from the
 * newest survey, so that a store that nobody feeds loses nothing. */
enum { HISTORY_THIN_DAYS = 14, HISTORY_THIN_WEEKS = 26 };

/* Sets out_keep, by survey. The first and the last one are kept, and both sides of each change: a
 * GPU became or ceased to be an outlier or unmeasured, a card moved, is new or gone. To be called
 * after history_finish. What is left of a thinned history is kept when it is thinned again. */
void history_thin(const struct history *history, bool *out_keep);

#endif
