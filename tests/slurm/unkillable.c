/* In place of a survey that hangs in the driver: becomes root, so that the user who started it can
 * neither signal it nor see it end. Installed with the set-user-ID bit. Ends by itself. */
#include <signal.h>
#include <unistd.h>

int main(void)
{
    enum { SECONDS = 250 };
    if (setuid(0))
        return 1;
    signal(SIGTERM, SIG_IGN);
    sleep(SECONDS);
    return 0;
}
