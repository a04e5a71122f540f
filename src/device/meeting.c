/* The flags of a meeting. A member lowers none of its flags before it leaves. So a member whose
 * flag of the phase before is down has left. */
#include "device/meeting.h"

static uint64_t name_of(const struct meeting *meeting, size_t member, enum meeting_phase phase)
{
    return meeting->names[member] + (uint64_t)phase;
}

void meeting_init(struct meeting *meeting, size_t count, size_t own)
{
    *meeting = (struct meeting){.count = count, .own = own};
}

int meeting_enter(struct meeting *meeting, enum meeting_phase phase)
{
    meeting->flags[phase].name = name_of(meeting, meeting->own, phase);
    return flag_raise(&meeting->flags[phase]);
}

/* Who may still reach the phase: looked at before the phase itself, so that no step is missed. */
static bool may_reach(const struct meeting *meeting, size_t member, enum meeting_phase phase)
{
    return phase == MEETING_HERE ? flag_is_up(meeting->coming[member])
                                 : flag_is_up(name_of(meeting, member, phase - 1));
}

bool meeting_reached(struct meeting *meeting, enum meeting_phase phase)
{
    bool all = true;
    for (size_t i = 0; i < meeting->count; i++) {
        /* Who is not known yet may still begin, as long as others are waited for. */
        if (i == meeting->own || (meeting->absent[i] && phase != MEETING_HERE))
            continue;
        bool may = may_reach(meeting, i, phase);
        bool there = flag_is_up(name_of(meeting, i, phase));
        meeting->absent[i] = !there && !may;
        all = all && (there || !may);
    }
    return all;
}

size_t meeting_present(const struct meeting *meeting)
{
    size_t present = 0;
    for (size_t i = 0; i < meeting->count; i++)
        present += !meeting->absent[i];
    return present;
}

void meeting_leave(struct meeting *meeting)
{
    for (int phase = MEETING_PHASES - 1; phase >= 0; phase--)
        flag_lower(&meeting->flags[phase]);
}
