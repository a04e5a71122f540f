/* The exit codes of gpumemtopo-survey; docs/cluster.md says what each means. */
#ifndef GPUMEMTOPO_SURVEY_EXIT_CODE_H
#define GPUMEMTOPO_SURVEY_EXIT_CODE_H

enum survey_exit {
    SURVEY_EXIT_OK,
    SURVEY_EXIT_NO_REPORT,
    SURVEY_EXIT_BAD_INPUT,
    SURVEY_EXIT_OUTLIERS,
    SURVEY_EXIT_INCOMPLETE,
};

#endif
