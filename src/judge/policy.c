/* The site's policy: which action a verdict calls for. */
#include "judge/policy.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "catalogue/metrics.h"

/* The default policy, a row per verdict. `most`: the strongest action that a site may choose. */
static const struct {
    bool by_loss;
    enum action action, most;
} policy_defaults[VERDICT_COUNT] = {
    [VERDICT_FAILING] = {false, ACTION_DRAIN, ACTION_DRAIN},
    [VERDICT_DEGRADED] = {true, ACTION_ALERT, ACTION_DRAIN},
    [VERDICT_MISCONFIGURED] = {true, ACTION_ALERT, ACTION_DRAIN},
    [VERDICT_MISMATCHED] = {false, ACTION_ALERT, ACTION_DRAIN},
    [VERDICT_UNSTEADY] = {false, ACTION_ALERT, ACTION_DRAIN},
    /* Nothing is wrong with such a card, and no vendor replaces it. */
    [VERDICT_BUILT_SLOWER] = {false, ACTION_TELL, ACTION_TELL},
    /* Never more without certainty. */
    [VERDICT_UNKNOWN] = {false, ACTION_TELL, ACTION_TELL},
};

/* From which loss on, by default. */
static const double policy_from[ACTION_COUNT] = {
    [ACTION_TELL] = 0.01, [ACTION_ALERT] = 0.02, [ACTION_DRAIN] = 0.05};

/* Members of `policy`: those of struct policy_keys, then a key per verdict. */
struct policy_keys {
    const struct yaml_node *from[ACTION_COUNT];
    const struct yaml_node *job, *jobs;
    const struct yaml_node *verdicts[VERDICT_COUNT];
};

/* "5 %" or "0.05". */
static int policy_read_share(const struct yaml_node *node, double *out_share, struct err *err)
{
    const char *text = yaml_plain(node);
    size_t length = text ? strcspn(text, " %") : 0;
    bool percent = text && strchr(text, '%');
    char number[32] = "";
    double value;
    if (length && length < sizeof number)
        memcpy(number, text, length);
    const char *rest = text ? text + length + strspn(text + length, " ") : "";
    if (str_parse_f64(number, &value) || strcmp(rest, percent ? "%" : "") != 0)
        return yaml_error(node, err, "expected a share such as 5 %% or 0.05, found \"%.40s\"",
                          text ? text : "another kind of value");
    value /= percent ? 100 : 1;
    if (!(value >= 0 && value <= 1))
        return yaml_error(node, err, "expected a share from 0 %% to 100 %%, found \"%.40s\"", text);
    *out_share = value;
    return 0;
}

/* Reads the losses that are given over those of `from`. One that is not given is moved, if it must
 * be, between those that are: a site that says "tell from 3 %" need not say "alert from 3 %". */
static int policy_read_losses(const struct yaml_node *const *given, double *from, struct err *err)
{
    for (int action = ACTION_TELL; action <= ACTION_DRAIN; action++) {
        int rc = given[action] ? policy_read_share(given[action], &from[action], err) : 0;
        if (rc)
            return rc;
    }
    for (int action = ACTION_TELL; action <= ACTION_DRAIN; action++)
        for (int other = ACTION_TELL; other <= ACTION_DRAIN; other++) {
            if (!given[other] || action == other)
                continue;
            if (!given[action])
                from[action] = action < other ? fmin(from[action], from[other])
                                              : fmax(from[action], from[other]);
            else if (action > other && from[action] < from[other])
                return yaml_error(given[action], err,
                                  "%s from %g %% on is below %s from %g %% on: expected tell <= "
                                  "alert <= drain",
                                  action_name((enum action)action), 100 * from[action],
                                  action_name((enum action)other), 100 * from[other]);
        }
    return 0;
}

/* `degraded: {alert: 3 %, drain: 8 %}` or `degraded: drain`. */
static int policy_read_verdict(const struct yaml_node *node, enum verdict verdict,
                               struct policy_row *row, struct err *err)
{
    enum action most = policy_defaults[verdict].most;
    if (yaml_kind(node) == YAML_MAPPING) {
        const struct yaml_node *given[ACTION_COUNT] = {NULL};
        struct yaml_field fields[ACTION_COUNT];
        size_t count = 0;
        for (int action = ACTION_TELL; action <= (int)most; action++)
            fields[count++] = (struct yaml_field){action_name((enum action)action), YAML_NODE,
                                                  (size_t)action * sizeof *given};
        int rc = yaml_read_fields(node, fields, count, given, err);
        row->by_loss = true;
        return rc ? rc : policy_read_losses(given, row->from, err);
    }
    size_t action;
    int rc = yaml_as_word(node, action_names, (size_t)most + 1, &action, err);
    if (rc)
        return rc;
    row->by_loss = false;
    row->action = (enum action)action;
    return 0;
}

static bool policy_memory_exists(const char *memory)
{
    for (size_t i = 0; i < metric_row_count; i++)
        if (strcspn(metric_rows[i].key, ".") == strlen(memory) &&
            strncmp(metric_rows[i].key, memory, strlen(memory)) == 0)
            return true;
    return false;
}

static int policy_read_weights(const struct yaml_node *job, struct policy *policy, struct err *err)
{
    int rc = yaml_expect(job, YAML_MAPPING, err);
    if (rc)
        return rc;
    policy->weights = mem_array(yaml_count(job), sizeof *policy->weights);
    for (size_t i = 0; i < yaml_count(job) && !rc; i++) {
        const char *memory = yaml_key(job, i);
        struct policy_weight weight = {.weight = 1};
        if (!policy_memory_exists(memory))
            return yaml_error(yaml_key_node(job, i), err,
                              "expected the first word of a judged figure, such as main, l2 or "
                              "host; found \"%.40s\"",
                              memory);
        rc = yaml_as_f64(yaml_at(job, i), 0, 1, &weight.weight, err);
        if (rc)
            return rc;
        weight.memory = str_copy(memory);
        policy->weights[policy->weight_count++] = weight;
    }
    return 0;
}

/* Checks all jobs, and keeps the weights of the one that `job` names. */
static int policy_read_jobs(const struct policy_keys *keys, struct policy *policy, struct err *err)
{
    const char *name = NULL;
    bool found = false;
    int rc = keys->job ? yaml_as_text(keys->job, &name, err) : 0;
    if (!rc && keys->jobs)
        rc = yaml_expect(keys->jobs, YAML_MAPPING, err);
    for (size_t i = 0; !rc && keys->jobs && i < yaml_count(keys->jobs); i++) {
        struct policy other = {0};
        bool wanted = name && str_equal(name, yaml_key(keys->jobs, i));
        rc = policy_read_weights(yaml_at(keys->jobs, i), wanted ? policy : &other, err);
        policy_fini(&other);
        found |= wanted;
    }
    if (!rc && name && !found)
        rc =
            yaml_error(keys->job, err, "expected the name of one of `jobs`, found \"%.40s\"", name);
    return rc;
}

int policy_read(const struct yaml_node *mapping, struct policy *out_policy, struct err *err)
{
    struct yaml_field fields[ACTION_COUNT + VERDICT_COUNT + 1] = {
        {"job", YAML_NODE, offsetof(struct policy_keys, job)},
        {"jobs", YAML_NODE, offsetof(struct policy_keys, jobs)},
    };
    size_t count = 2;
    for (int action = ACTION_TELL; action <= ACTION_DRAIN; action++)
        fields[count++] = (struct yaml_field){action_name((enum action)action), YAML_NODE,
                                              offsetof(struct policy_keys, from) +
                                                  (size_t)action * sizeof(void *)};
    for (int verdict = 0; verdict < VERDICT_COUNT; verdict++)
        fields[count++] = (struct yaml_field){verdict_name((enum verdict)verdict), YAML_NODE,
                                              offsetof(struct policy_keys, verdicts) +
                                                  (size_t)verdict * sizeof(void *)};
    struct policy_keys keys = {0};
    struct policy policy = {0};
    double from[ACTION_COUNT];
    memcpy(from, policy_from, sizeof from);
    int rc = mapping ? yaml_read_fields(mapping, fields, count, &keys, err) : 0;
    if (!rc)
        rc = policy_read_losses(keys.from, from, err);
    for (int verdict = 0; verdict < VERDICT_COUNT && !rc; verdict++) {
        struct policy_row *row = &policy.rows[verdict];
        row->by_loss = policy_defaults[verdict].by_loss;
        row->action = policy_defaults[verdict].action;
        memcpy(row->from, from, sizeof from);
        if (keys.verdicts[verdict])
            rc = policy_read_verdict(keys.verdicts[verdict], (enum verdict)verdict, row, err);
    }
    if (!rc)
        rc = policy_read_jobs(&keys, &policy, err);
    if (rc)
        policy_fini(&policy);
    else
        *out_policy = policy;
    return rc;
}

void policy_fini(struct policy *policy)
{
    for (size_t i = 0; i < policy->weight_count; i++)
        free(policy->weights[i].memory);
    free(policy->weights);
    *policy = (struct policy){0};
}

bool policy_is_default(const struct policy *policy)
{
    bool same = !policy->weight_count;
    for (int verdict = 0; verdict < VERDICT_COUNT; verdict++) {
        const struct policy_row *row = &policy->rows[verdict];
        same &= row->by_loss == policy_defaults[verdict].by_loss &&
                row->action == policy_defaults[verdict].action;
        for (int action = ACTION_TELL; action <= ACTION_DRAIN; action++)
            same &= row->from[action] == policy_from[action];
    }
    return same;
}

enum action policy_action(const struct policy *policy, enum verdict verdict, double loss, bool sure)
{
    enum verdict counts_as = sure ? verdict : VERDICT_UNKNOWN;
    const struct policy_row *row = &policy->rows[counts_as];
    enum action most = policy_defaults[counts_as].most;
    /* What fails is no question of a loss. */
    if (loss < row->from[ACTION_TELL] && (row->by_loss || counts_as != VERDICT_FAILING))
        return ACTION_NOTHING;
    if (!row->by_loss || isnan(loss))
        return row->action;
    enum action action = loss >= row->from[ACTION_DRAIN]   ? ACTION_DRAIN
                         : loss >= row->from[ACTION_ALERT] ? ACTION_ALERT
                                                           : ACTION_TELL;
    return action < most ? action : most;
}

double policy_cost(const struct policy *policy, const char *metric, double loss)
{
    for (size_t i = 0; i < policy->weight_count; i++) {
        const char *memory = policy->weights[i].memory;
        if (strncmp(metric, memory, strlen(memory)) == 0 && metric[strlen(memory)] == '.')
            return loss * policy->weights[i].weight;
    }
    return loss;
}
