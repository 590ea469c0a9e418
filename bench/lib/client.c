/* The benchmark's client, on librdkafka: the same binary for every server that is measured.
 *
 *   client produce BOOTSTRAP TOPIC COUNT SIZE [name=value ...]   produce COUNT records of SIZE bytes
 *   client consume BOOTSTRAP TOPIC COUNT                         read COUNT records from the start
 *   client latency BOOTSTRAP TOPIC RATE SECONDS SIZE [name=value ...]   end to end, open loop
 *   client transactions BOOTSTRAP TOPIC SECONDS PRODUCERS RECORDS SIZE [name=value ...]
 *                                                        each producer commits RECORDS at a time
 *
 * Trailing name=value pairs are librdkafka settings. Prints one line of JSON. Exits 1 when a record
 * was not delivered, delivered twice, or damaged.
 */
#include <librdkafka/rdkafka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void die(const char *what, const char *why) {
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

static void set(rd_kafka_conf_t *conf, const char *name, const char *value) {
    char error[256];
    if (rd_kafka_conf_set(conf, name, value, error, sizeof error) != RD_KAFKA_CONF_OK)
        die(name, error);
}

static void set_pairs(rd_kafka_conf_t *conf, char **pairs, int count) {
    for (int i = 0; i < count; i++) {
        char *equals = strchr(pairs[i], '=');
        if (!equals) die("expected name=value", pairs[i]);
        *equals = 0;
        set(conf, pairs[i], equals + 1);
    }
}

/* --- produce --- */

static _Atomic long delivered, failed;

static void on_delivery(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque) {
    (void)rk, (void)opaque;
    if (message->err) failed++;
    else delivered++;
}

static rd_kafka_t *new_producer(const char *bootstrap, char **pairs, int count) {
    char error[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    set(conf, "bootstrap.servers", bootstrap);
    set(conf, "queue.buffering.max.messages", "2000000");
    set(conf, "queue.buffering.max.kbytes", "1000000");
    set_pairs(conf, pairs, count);
    rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, error, sizeof error);
    if (!rk) die("producer", error);
    return rk;
}

/* Text of words, so that codecs have something to do but not a miracle to work. */
static void fill(char *payload, size_t size) {
    static const char *words[] = {"order ", "customer ", "validated ", "parcel ", "invoice ",
                                  "7f3a9c", "0451", "lantern ", "\"price\":", "heart "};
    uint64_t state = 88172645463325252ULL;
    size_t used = 0;
    while (used < size) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        const char *word = words[state % 10];
        size_t length = strlen(word);
        if (length > size - used) length = size - used;
        memcpy(payload + used, word, length);
        used += length;
    }
}

static int produce(const char *bootstrap, const char *topic, long count, size_t size, char **pairs,
                   int pair_count) {
    rd_kafka_t *rk = new_producer(bootstrap, pairs, pair_count);
    rd_kafka_topic_t *rkt = rd_kafka_topic_new(rk, topic, NULL);
    char *payload = malloc(size + 8);
    fill(payload, size);
    double start = now();
    for (long i = 0; i < count; i++) {
        if (size >= 8) memcpy(payload, &i, 8);
        while (rd_kafka_produce(rkt, RD_KAFKA_PARTITION_UA, RD_KAFKA_MSG_F_COPY, payload, size,
                                NULL, 0, NULL) == -1) {
            if (rd_kafka_last_error() != RD_KAFKA_RESP_ERR__QUEUE_FULL)
                die("produce", rd_kafka_err2str(rd_kafka_last_error()));
            rd_kafka_poll(rk, 10);
        }
        if (i % 1000 == 0) rd_kafka_poll(rk, 0);
    }
    rd_kafka_flush(rk, 120000);
    double seconds = now() - start;
    printf("{\"seconds\": %.6f, \"records\": %ld, \"failed\": %ld, \"bytes\": %.0f}\n", seconds,
           (long)delivered, (long)failed, (double)delivered * (double)size);
    rd_kafka_topic_destroy(rkt);
    rd_kafka_destroy(rk);
    return delivered == count ? 0 : 1;
}

/* --- consume --- */

static rd_kafka_t *new_consumer(const char *bootstrap, const char *topic, const char *offset,
                                int *partition_count) {
    char error[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    set(conf, "bootstrap.servers", bootstrap);
    set(conf, "group.id", "bench");
    set(conf, "enable.auto.commit", "false");
    set(conf, "check.crcs", "false");
    set(conf, "queued.min.messages", "500000");
    set(conf, "fetch.message.max.bytes", "4194304");
    set(conf, "fetch.wait.max.ms", "100");
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, error, sizeof error);
    if (!rk) die("consumer", error);
    rd_kafka_poll_set_consumer(rk);
    const struct rd_kafka_metadata *metadata;
    rd_kafka_topic_t *rkt = rd_kafka_topic_new(rk, topic, NULL);
    rd_kafka_resp_err_t err = rd_kafka_metadata(rk, 0, rkt, &metadata, 30000);
    if (err) die("metadata", rd_kafka_err2str(err));
    *partition_count = metadata->topics[0].partition_cnt;
    if (*partition_count == 0) die("no such topic", topic);
    rd_kafka_metadata_destroy(metadata);
    rd_kafka_topic_destroy(rkt);
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(*partition_count);
    for (int p = 0; p < *partition_count; p++)
        rd_kafka_topic_partition_list_add(list, topic, p)->offset =
            strcmp(offset, "end") ? RD_KAFKA_OFFSET_BEGINNING : RD_KAFKA_OFFSET_END;
    err = rd_kafka_assign(rk, list);
    if (err) die("assign", rd_kafka_err2str(err));
    rd_kafka_topic_partition_list_destroy(list);
    return rk;
}

static int consume(const char *bootstrap, const char *topic, long count) {
    int partitions;
    rd_kafka_t *rk = new_consumer(bootstrap, topic, "beginning", &partitions);
    rd_kafka_queue_t *queue = rd_kafka_queue_get_consumer(rk);
    rd_kafka_message_t **batch = malloc(10000 * sizeof *batch);
    long records = 0, gaps = 0;
    double bytes = 0, start = now(), quiet = start;
    int64_t *next = calloc((size_t)partitions, sizeof *next);
    while (records < count && now() - quiet < 30) {
        ssize_t got = rd_kafka_consume_batch_queue(queue, 1000, batch, 10000);
        if (got > 0) quiet = now();
        for (ssize_t i = 0; i < got; i++) {
            if (!batch[i]->err) {
                if (batch[i]->offset != next[batch[i]->partition]) gaps++;
                next[batch[i]->partition] = batch[i]->offset + 1;
                records++;
                bytes += (double)batch[i]->len;
            }
            rd_kafka_message_destroy(batch[i]);
        }
    }
    double seconds = now() - start;
    printf("{\"seconds\": %.6f, \"records\": %ld, \"gaps\": %ld, \"bytes\": %.0f}\n", seconds,
           records, gaps, bytes);
    rd_kafka_queue_destroy(queue);
    rd_kafka_consumer_close(rk);
    rd_kafka_destroy(rk);
    return records == count && gaps == 0 ? 0 : 1;
}

/* --- latency: records carry the time they were DUE, so a stalled sender hides nothing --- */

struct latency {
    rd_kafka_t *consumer;
    long expected, received;
    double *seconds;
};

static void *receive(void *argument) {
    struct latency *run = argument;
    double quiet = now();
    while (run->received < run->expected && now() - quiet < 20) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(run->consumer, 200);
        if (!message) continue;
        if (!message->err && message->len >= 8) {
            double due;
            memcpy(&due, message->payload, 8);
            run->seconds[run->received++] = now() - due;
            quiet = now();
        }
        rd_kafka_message_destroy(message);
    }
    return NULL;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int latency(const char *bootstrap, const char *topic, double rate, double duration,
                   size_t size, char **pairs, int pair_count) {
    int partitions;
    long count = (long)(rate * duration);
    struct latency run = {.expected = count, .seconds = malloc((size_t)count * sizeof(double))};
    run.consumer = new_consumer(bootstrap, topic, "end", &partitions);
    rd_kafka_t *rk = new_producer(bootstrap, pairs, pair_count);
    rd_kafka_topic_t *rkt = rd_kafka_topic_new(rk, topic, NULL);
    double settled = now() + 2; /* the consumer finds the end of the log first */
    while (now() < settled) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(run.consumer, 100);
        if (message) rd_kafka_message_destroy(message);
    }
    pthread_t thread;
    pthread_create(&thread, NULL, receive, &run);
    char *payload = calloc(1, size < 8 ? 8 : size);
    double start = now();
    for (long i = 0; i < count; i++) {
        double due = start + (double)i / rate, left = due - now();
        if (left > 0) {
            struct timespec pause = {(time_t)left, (long)((left - (double)(time_t)left) * 1e9)};
            nanosleep(&pause, NULL);
        }
        memcpy(payload, &due, 8);
        while (rd_kafka_produce(rkt, RD_KAFKA_PARTITION_UA, RD_KAFKA_MSG_F_COPY, payload,
                                size < 8 ? 8 : size, NULL, 0, NULL) == -1)
            rd_kafka_poll(rk, 1);
        rd_kafka_poll(rk, 0);
    }
    rd_kafka_flush(rk, 30000);
    pthread_join(thread, NULL);
    qsort(run.seconds, (size_t)run.received, sizeof(double), by_value);
#define AT(q) (run.received ? run.seconds[(long)((double)(run.received - 1) * (q))] * 1e3 : -1)
    printf("{\"records\": %ld, \"expected\": %ld, \"p50_ms\": %.3f, \"p99_ms\": %.3f, "
           "\"p999_ms\": %.3f, \"max_ms\": %.3f}\n",
           run.received, count, AT(0.5), AT(0.99), AT(0.999), AT(1.0));
    return run.received == count && failed == 0 ? 0 : 1;
}

/* --- transactions: from begin to commit one after the other, several producers at once --- */

struct committer {
    pthread_t thread;
    const char *bootstrap, *topic;
    double warm, end; /* what is begun before `warm` does not count */
    int number, records, pair_count;
    size_t size;
    char **pairs;
    long count, room;
    double *seconds; /* of each call that commits */
};

static void check(const char *what, rd_kafka_error_t *error) {
    if (error) die(what, rd_kafka_error_string(error));
}

static void *commit(void *argument) {
    struct committer *run = argument;
    char name[64], error[256];
    snprintf(name, sizeof name, "%s-%d", run->topic, run->number);
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    set(conf, "bootstrap.servers", run->bootstrap);
    set(conf, "transactional.id", name);
    set_pairs(conf, run->pairs, run->pair_count);
    rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, error, sizeof error);
    if (!rk) die("producer", error);
    check("init", rd_kafka_init_transactions(rk, 60000));
    rd_kafka_topic_t *rkt = rd_kafka_topic_new(rk, run->topic, NULL);
    char *payload = malloc(run->size);
    fill(payload, run->size);
    double start;
    while ((start = now()) < run->end) {
        check("begin", rd_kafka_begin_transaction(rk));
        for (int i = 0; i < run->records; i++)
            if (rd_kafka_produce(rkt, RD_KAFKA_PARTITION_UA, RD_KAFKA_MSG_F_COPY, payload,
                                 run->size, NULL, 0, NULL) == -1)
                die("produce", rd_kafka_err2str(rd_kafka_last_error()));
        double ended = now();
        check("commit", rd_kafka_commit_transaction(rk, 60000));
        if (start < run->warm || now() > run->end) continue;
        if (run->count == run->room)
            run->seconds =
                realloc(run->seconds, (size_t)(run->room = 2 * run->room + 1024) * sizeof(double));
        run->seconds[run->count++] = now() - ended;
    }
    rd_kafka_topic_destroy(rkt);
    rd_kafka_destroy(rk);
    return NULL;
}

static int transactions(const char *bootstrap, const char *topic, double seconds, int producers,
                        int records, size_t size, char **pairs, int pair_count) {
    struct committer *runs = calloc((size_t)producers, sizeof *runs);
    double warm = now() + seconds / 4 + 1, *all;
    long count = 0;
    for (int i = 0; i < producers; i++) {
        char **own = calloc((size_t)pair_count + 1, sizeof *own); /* `set_pairs` cuts them up */
        for (int pair = 0; pair < pair_count; pair++) own[pair] = strdup(pairs[pair]);
        runs[i] = (struct committer){.bootstrap = bootstrap, .topic = topic, .number = i,
                                     .warm = warm, .end = warm + seconds, .records = records,
                                     .size = size, .pairs = own, .pair_count = pair_count};
        pthread_create(&runs[i].thread, NULL, commit, &runs[i]);
    }
    for (int i = 0; i < producers; i++) pthread_join(runs[i].thread, NULL), count += runs[i].count;
    all = malloc((size_t)(count + 1) * sizeof *all);
    for (int i = 0, at = 0; i < producers; at += (int)runs[i++].count)
        memcpy(all + at, runs[i].seconds, (size_t)runs[i].count * sizeof *all);
    qsort(all, (size_t)count, sizeof *all, by_value);
#define COMMIT_MS(q) (count ? all[(long)((double)(count - 1) * (q))] * 1e3 : -1)
    printf("{\"transactions\": %ld, \"seconds\": %.6f, \"p50_ms\": %.3f, \"p99_ms\": %.3f}\n",
           count, seconds, COMMIT_MS(0.5), COMMIT_MS(0.99));
    return count && failed == 0 ? 0 : 1;
}

int main(int count, char **arguments) {
    const char *mode = count > 1 ? arguments[1] : "";
    if (!strcmp(mode, "produce") && count >= 6)
        return produce(arguments[2], arguments[3], atol(arguments[4]), (size_t)atol(arguments[5]),
                       arguments + 6, count - 6);
    if (!strcmp(mode, "consume") && count == 5)
        return consume(arguments[2], arguments[3], atol(arguments[4]));
    if (!strcmp(mode, "latency") && count >= 7)
        return latency(arguments[2], arguments[3], atof(arguments[4]), atof(arguments[5]),
                       (size_t)atol(arguments[6]), arguments + 7, count - 7);
    if (!strcmp(mode, "transactions") && count >= 8)
        return transactions(arguments[2], arguments[3], atof(arguments[4]), atoi(arguments[5]),
                            atoi(arguments[6]), (size_t)atol(arguments[7]), arguments + 8,
                            count - 8);
    fprintf(stderr, "usage: client produce|consume|latency|transactions BOOTSTRAP TOPIC ...\n");
    return 2;
}
