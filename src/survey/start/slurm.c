/* A step of Slurm that runs a survey: what it lacks, and the way to the inventory if it ends early.
 */
#include "survey/start/slurm.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/out_file.h"
#include "inventory/wire/spool.h"
#include "survey/rank/spooling.h"
#include "survey/start/stand_aside.h"

const char *slurm_missing_gpus(char *(*get_variable)(const char *name))
{
    static const char *const given[] = {"SLURM_GPUS_ON_NODE", "SLURM_STEP_GPUS", "SLURM_JOB_GPUS"};
    if (!get_variable("SLURM_STEP_ID"))
        return NULL;
    for (size_t i = 0; i < COUNT_OF(given); i++)
        if (get_variable(given[i]))
            return NULL;
    return "this step of Slurm was given no GPUs: add --gpus-per-task=1 (one task per GPU) or "
           "--gpus-per-node=N to srun";
}

/* In quotes if a shell would not take the path as one word. */
static void slurm_add_word(struct strbuf *text, const char *path)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "/._-+,:@%=";
    if (*path && !path[strspn(path, plain)] && *path != '-') {
        strbuf_printf(text, "%s", path);
        return;
    }
    strbuf_printf(text, *path == '-' ? "./'" : "'");
    for (const char *at = path; *at; at++)
        strbuf_printf(text, *at == '\'' ? "'\\''" : "%c", *at);
    strbuf_printf(text, "'");
}

void slurm_way_back(const char *output, const char *spool, struct strbuf *out_text)
{
    if (out_file_in_place(output))
        return;
    char *beside = str_format("%s.spool", output);
    strbuf_printf(out_text, "gpumemtopo-report merge -o ");
    slurm_add_word(out_text, output);
    strbuf_printf(out_text, " ");
    slurm_add_word(out_text, spool ? spool : beside);
    free(beside);
}

/* The note of this process. */
static struct {
    struct spooling spooling; /* holds the lock until slurm_note_release */
    char *path;               /* of the file; NULL: there is none */
    ino_t inode;
} note;

static void slurm_note_plan(struct spooling *spooling, const struct comm_place *place,
                            const struct survey_config *config, int nodes, int argc,
                            char *const *argv)
{
    size_t ranks = (size_t)place->tasks;
    struct gpu_result *unknown = mem_array(ranks, sizeof *unknown);
    char **command = mem_array((size_t)argc, sizeof *command);
    for (int i = 0; i < argc; i++)
        command[i] = i ? argv[i] : (char *)str_last_part(argv[i]);
    for (size_t i = 0; i < ranks; i++) {
        unknown[i].rank = (int32_t)i;
        unknown[i].status = GPU_LOST;
        unknown[i].reason =
            str_format("rank %zu did not start, or ended before it had listed its GPUs", i);
    }
    const struct spool_survey plan = {
        .command = command,
        .command_count = (size_t)argc,
        .config_name = (char *)str_last_part(config->name ? config->name : ""),
        .config_text = config->text,
        .ranks = (uint32_t)ranks,
        .nodes = nodes > 0 ? (uint32_t)nodes : 0,
        .lost_ranks = (uint32_t)ranks,
        .unknown = unknown,
        .unknown_count = ranks,
    };
    spooling_survey(spooling, &plan);
    for (size_t i = 0; i < ranks; i++)
        free(unknown[i].reason);
    free(unknown);
    free(command);
}

void slurm_note_write(const struct comm_place *place, const struct survey_options *options,
                      const struct survey_config *config, int nodes, int argc, char *const *argv)
{
    struct err ignored = {0};
    struct stat info;
    if (!*place->job || options->replay || out_file_check("--output", options->output, &ignored) ||
        spooling_begin(&note.spooling, options, place, options->output, options->output,
                       &ignored) ||
        !note.spooling.folder)
        return;
    slurm_note_plan(&note.spooling, place, config, nodes, argc, argv);
    note.path = spool_survey_path(note.spooling.folder, note.spooling.survey);
    note.inode = stat(note.path, &info) ? 0 : info.st_ino;
}

void slurm_note_release(void)
{
    if (!note.path)
        return;
    stand_aside_watch(-1, 0);
    close(note.spooling.owner.fd);
    note.spooling.owner.fd = -1;
}

void slurm_note_remove(void)
{
    struct stat info;
    if (note.path && stat(note.path, &info) == 0 && info.st_ino == note.inode)
        unlink(note.path);
    if (note.path)
        spooling_remove_folder(&note.spooling);
    free(note.path);
    note.path = NULL;
    spooling_fini(&note.spooling);
}
