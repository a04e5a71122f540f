/* Spools the plan of the survey. */
#include "survey/root/spool_plan.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"

int spool_plan_write(const struct spool_plan *spool, const struct comm *comm,
                     const struct ranks *ranks, const struct node_list *nodes, struct err *err)
{
    struct gpu_result *expected = mem_array(ranks->gpu_total, sizeof *expected);
    struct spool_survey survey = {
        .command_count = spool->command_count,
        .config_name = (char *)spool->config_name,
        .config_text = (char *)spool->config_text,
        .ranks = (uint32_t)comm->place.tasks,
        .apart = comm_is_standalone(comm),
        .rank = (uint32_t)comm->place.task,
        .nodes = (uint32_t)nodes->node_count,
        .lost_ranks = (uint32_t)ranks_lost(ranks),
        .bare_nodes = nodes->bare,
        .bare_count = nodes->bare_count,
        .expected = expected,
        .unknown = ranks->unmeasured->items,
        .unknown_count = ranks->unmeasured->count,
    };
    char **command = mem_array(spool->command_count, sizeof *command);
    if (!expected || !command) {
        free(expected);
        free(command);
        return err_no_memory(err);
    }
    for (size_t i = 0; i < spool->command_count; i++)
        command[i] = spool->command[i];
    if (spool->command_count)
        command[0] = (char *)str_last_part(command[0]);
    survey.command = command;
    for (size_t rank = 0; rank < ranks->count; rank++) {
        const struct known_rank *member = &ranks->items[rank];
        for (size_t i = 0; i < member->share.count; i++) {
            struct gpu_result *gpu = &expected[survey.expected_count++];
            *gpu = member->announce.gpus[member->share.positions[i]]; /* borrows all strings */
            gpu->rank = ranks->first + (int32_t)rank;
        }
    }
    spooling_survey(spool->spooling, &survey);
    free(expected);
    free(command);
    return 0;
}
