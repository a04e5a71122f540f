/* A rank's contact with rank 0: states, events, and the table of transitions. The same table is in
 * docs/ARCHITECTURE.md; tests/survey/test_rank_state.c compares the two. */
#ifndef GPUMEMTOPO_SURVEY_RANK_ROOT_CONTACT_H
#define GPUMEMTOPO_SURVEY_RANK_ROOT_CONTACT_H

#include <stdbool.h>

enum root_contact {
    ROOT_CONTACT_NONE,     /* an entry of the table: the event is refused */
    ROOT_CONTACT_UNHEARD,  /* rank 0 has not sent a message yet */
    ROOT_CONTACT_HEARD,    /* rank 0 lives */
    ROOT_CONTACT_SILENT,   /* no message for too long; rank 0 may come back */
    ROOT_CONTACT_GIVEN_UP, /* the rank leaves without rank 0's QUIT */
    ROOT_CONTACT_QUIT,     /* rank 0 has said QUIT: the rank leaves */
    ROOT_CONTACTS
};

enum root_contact_event {
    ROOT_CONTACT_EVENT_HEARD,       /* any message came; always before what the message says */
    ROOT_CONTACT_EVENT_SAID_QUIT,   /* the message is QUIT */
    ROOT_CONTACT_EVENT_FELL_SILENT, /* no message for too long */
    ROOT_CONTACT_EVENT_GAVE_UP,     /* nothing is left to do, and no message for even longer */
    ROOT_CONTACT_EVENTS
};

/* Moves *contact along the table. False: the event is refused and *contact is as it was. */
bool root_contact_apply(enum root_contact *contact, enum root_contact_event event);

#endif
