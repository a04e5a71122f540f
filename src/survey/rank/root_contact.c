/* A rank's contact with rank 0. */
#include "survey/rank/root_contact.h"

static const enum root_contact transitions[ROOT_CONTACTS][ROOT_CONTACT_EVENTS] = {
    /* A rank 0 that never started has already had the start timeout, so there is no second wait. */
    [ROOT_CONTACT_UNHEARD] =
        {
            [ROOT_CONTACT_EVENT_HEARD] = ROOT_CONTACT_HEARD,
            [ROOT_CONTACT_EVENT_GAVE_UP] = ROOT_CONTACT_GIVEN_UP,
        },
    [ROOT_CONTACT_HEARD] =
        {
            [ROOT_CONTACT_EVENT_HEARD] = ROOT_CONTACT_HEARD,
            [ROOT_CONTACT_EVENT_SAID_QUIT] = ROOT_CONTACT_QUIT,
            [ROOT_CONTACT_EVENT_FELL_SILENT] = ROOT_CONTACT_SILENT,
        },
    [ROOT_CONTACT_SILENT] =
        {
            [ROOT_CONTACT_EVENT_HEARD] = ROOT_CONTACT_HEARD,
            [ROOT_CONTACT_EVENT_GAVE_UP] = ROOT_CONTACT_GIVEN_UP,
        },
    [ROOT_CONTACT_GIVEN_UP] = {[ROOT_CONTACT_EVENT_HEARD] = ROOT_CONTACT_HEARD},
    [ROOT_CONTACT_QUIT] =
        {
            [ROOT_CONTACT_EVENT_HEARD] = ROOT_CONTACT_QUIT,
            [ROOT_CONTACT_EVENT_SAID_QUIT] = ROOT_CONTACT_QUIT,
        },
};

bool root_contact_apply(enum root_contact *contact, enum root_contact_event event)
{
    enum root_contact next = transitions[*contact][event];
    if (next == ROOT_CONTACT_NONE)
        return false;
    *contact = next;
    return true;
}
