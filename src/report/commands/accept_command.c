/* gpumemtopo-report accept FILE --order ORDER: is a delivery what was ordered? */
#include "base/log.h"
#include "base/sha256.h"
#include "base/yaml.h"
#include "report/accept/accept.h"
#include "report/basis.h"
#include "report/command.h"
#include "report/commands/commands.h"

/* What is read, with the digest of the bytes that were read. */
struct inputs {
    struct inventory inventory;
    struct order order;
    char inventory_sha256[SHA256_TEXT], order_sha256[SHA256_TEXT];
};

static int accept_read_inventory(const char *path, struct inputs *inputs, struct err *err)
{
    struct strbuf text = {0};
    int rc = yaml_load_text(path, &yaml_limits_plain, &text, err);
    const char *data = text.data ? text.data : "";
    if (!rc)
        rc = inventory_read_text(data, text.length, path, &inputs->inventory, err);
    sha256_text(data, text.length, inputs->inventory_sha256);
    strbuf_fini(&text);
    if (rc)
        return rc;
    rc = report_validate(&inputs->inventory, err);
    if (rc)
        err_prefix(err, "%s", path);
    return rc;
}

static int accept_read_order(const char *path, const struct judge_config *config,
                             struct inputs *inputs, struct err *err)
{
    struct strbuf text = {0};
    int rc = yaml_load_text(path, &yaml_limits_config, &text, err);
    const char *data = text.data ? text.data : "";
    if (!rc)
        rc = order_read_text(data, text.length, path, config, &inputs->order, err);
    sha256_text(data, text.length, inputs->order_sha256);
    strbuf_fini(&text);
    return rc;
}

static int accept_write_reports(const struct command_options *options, const struct accept *accept,
                                const struct inputs *inputs)
{
    const struct accept_source source = {
        .inventory_path = str_last_part(options->files[0]),
        .order_path = str_last_part(options->order),
        .inventory_sha256 = inputs->inventory_sha256,
        .order_sha256 = inputs->order_sha256,
        .version = GPUMEMTOPO_VERSION,
    };
    struct strbuf text = {0}, page = {0};
    accept_put_text(accept, &source, &text);
    if (options->html)
        accept_put_page(accept, &source, &page);
    int code = command_write(&text, options->output);
    if (!code && options->html)
        code = command_write(&page, options->html);
    strbuf_fini(&page);
    if (code)
        return code;
    return accept->counts[ACCEPT_NOT_SHOWN] ? EXIT_MISSING
           : accept->finding_count          ? EXIT_WORSE
                                            : EXIT_DONE;
}

int command_accept(const struct command_options *options)
{
    struct report_basis basis = {0};
    struct inputs inputs = {0};
    struct accept accept = {0};
    struct err err = {0};
    if (!options->order) {
        log_error("accept needs --order ORDER; see gpumemtopo-report accept --help");
        return EXIT_BAD_INPUT;
    }
    int rc = report_basis_load_config(options->config, &basis, &err);
    if (!rc)
        rc = accept_read_order(options->order, &basis.config, &inputs, &err);
    if (!rc)
        rc = accept_read_inventory(options->files[0], &inputs, &err);
    if (!rc)
        rc = accept_compare(&inputs.order, &inputs.inventory, &accept, &err);
    int code = command_exit_code(rc);
    if (rc)
        log_failure(&err);
    else
        code = accept_write_reports(options, &accept, &inputs);
    accept_fini(&accept);
    order_fini(&inputs.order);
    inventory_fini(&inputs.inventory);
    report_basis_fini(&basis);
    return code;
}
