/* Answers about clusters and bulk copies, packed for the record. */
#include "base/mem.h"
#include "device/replay/answer.h"

void answer_put_cluster(struct strbuf *buffer, const struct device_cluster *cluster,
                        const struct device_cluster_answer *answer)
{
    uint64_t last = 0;
    wire_put_varint(buffer, answer->clusters);
    for (size_t i = 0; i < (size_t)answer->clusters * cluster->size; i++)
        wire_put_varint(buffer, answer->sms[i]);
    for (size_t i = 0; i < answer->clusters * device_cluster_cycles(cluster); i++) {
        wire_put_signed(buffer, (int64_t)(answer->cycles[i] - last));
        last = answer->cycles[i];
    }
}

static bool make_room(struct device_cluster_answer *answer, size_t blocks, size_t cycles)
{
    answer->sms = mem_array(blocks + 1, sizeof *answer->sms);
    answer->cycles = mem_array(cycles + 1, sizeof *answer->cycles);
    return answer->sms && answer->cycles;
}

void answer_get_cluster(struct wire_reader *reader, const struct device_cluster *cluster,
                        uint32_t sm_count, struct device_cluster_answer *out_answer)
{
    struct device_cluster_answer answer = {0};
    uint64_t clusters = wire_get_varint(reader), last = 0;
    if (!cluster->size || cluster->size > DEVICE_CLUSTER_MAX || clusters > sm_count / cluster->size)
        reader->bad = true;
    if (reader->bad)
        return;
    size_t blocks = (size_t)clusters * cluster->size;
    size_t cycles = (size_t)clusters * device_cluster_cycles(cluster);
    answer.clusters = (uint32_t)clusters;
    if (out_answer && !make_room(&answer, blocks, cycles))
        wire_no_memory(reader);
    for (size_t i = 0; i < blocks && !reader->bad; i++) {
        uint64_t sm = wire_get_varint(reader);
        if (sm >= sm_count)
            reader->bad = true;
        else if (answer.sms)
            answer.sms[i] = (uint16_t)sm;
    }
    for (size_t i = 0; i < cycles && !reader->bad; i++) {
        last += (uint64_t)wire_get_signed(reader);
        if (answer.cycles)
            answer.cycles[answer.cycle_count++] = last;
    }
    if (out_answer)
        *out_answer = answer;
}

void answer_put_bulk(struct strbuf *buffer, const struct device_bulk_answer *answer)
{
    wire_put_varint(buffer, answer->cycles);
    wire_put_varint(buffer, answer->elapsed_ns);
    wire_put_varint(buffer, answer->sms);
}

void answer_get_bulk(struct wire_reader *reader, struct device_bulk_answer *out_answer)
{
    out_answer->cycles = wire_get_varint(reader);
    out_answer->elapsed_ns = wire_get_varint(reader);
    out_answer->sms = (uint32_t)wire_get_varint(reader);
}
