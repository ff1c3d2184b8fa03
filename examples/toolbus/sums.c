/* A tool in C, on docs/reference/tool-protocol.md:   cc -o sums sums.c

   tool sums is { command = "./sums" }      snd-eval(S, add(1,2)) . rec-value(S, sum(N?))
                                            snd-eval(S, fib(30)) . rec-value(S, sum(N?))
                                            snd-do(S, say("hello"))                            */
#include <netdb.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HELLO = 1, INTERFACE = 2, ACCEPT = 3, REFUSE = 4, WELCOME = 5, VALUE = 16, VOID = 17, EVAL = 32, DO = 33, TERMINATE = 37 };
enum { APPL = 1, INT = 2, REAL = 3, LIST = 4, PLACEHOLDER = 5, BLOB = 6, LONG = 8, VALUES_MAX = 4096 };

typedef struct value { int kind, quoted; int64_t number; char name[256]; uint32_t count; struct value **parts; } value;

static int bus; /* the socket */
static void die(const char *why) { fprintf(stderr, "sums: %s\n", why); exit(1); }

/* Writing terms in SAF: nothing needs to be shared, so each value is written out. */
static unsigned char out[65536];
static size_t at;
static void byte(int b) { if (at == sizeof out) die("too long"); out[at++] = (unsigned char)b; }
static void bytes(const void *p, size_t n) { for (size_t i = 0; i < n; i++) byte(((const unsigned char *)p)[i]); }
static void varint(uint32_t n) { for (; n >= 0x80; n >>= 7) byte((n & 0x7f) | 0x80); byte((int)n); }
static void list(uint32_t size) { byte(LIST); varint(size); }
static void appl(const char *name, uint32_t arity) { byte(APPL); varint(arity); varint((uint32_t)strlen(name)); bytes(name, strlen(name)); }
static void string(const char *text) { byte(APPL | 0x20); varint(0); varint((uint32_t)strlen(text)); bytes(text, strlen(text)); }
static void integer(int64_t n) {
    if (n >= INT32_MIN && n <= INT32_MAX) { byte(INT); varint((uint32_t)(int32_t)n); return; }
    byte(LONG);
    for (int i = 0; i < 8; i++) byte((int)((uint64_t)n >> (8 * i) & 0xff));
}

/* Messages: a header of 16 bytes, 8 bytes for kind and transaction, the values, zeros up to a multiple of 8. */
static void begin(int kind, uint32_t transaction) {
    at = 0;
    for (int i = 0; i < 16; i++) byte(i == 4 ? 16 : 0);
    byte(kind), byte(0), byte(0), byte(0);
    for (int i = 0; i < 4; i++) byte(transaction >> (8 * i) & 0xff);
}
static void send_message(void) {
    uint32_t length = (uint32_t)at - 16;
    for (int i = 0; i < 4; i++) out[i] = (unsigned char)(length >> (8 * i));
    while (at % 8) byte(0);
    for (size_t sent = 0; sent < at;) {
        ssize_t n = write(bus, out + sent, at - sent);
        if (n <= 0) die("the bus is gone");
        sent += (size_t)n;
    }
}
static void receive(unsigned char *to, size_t size) {
    for (size_t got = 0; got < size;) {
        ssize_t n = read(bus, to + got, size - got);
        if (n <= 0) exit(0); /* the bus has ended */
        got += (size_t)n;
    }
}
static uint32_t u32(const unsigned char *p) { return p[0] | p[1] << 8 | p[2] << 16 | (uint32_t)p[3] << 24; }

/* Reading terms: values and symbols are numbered as their headers come, and may be named by number later on. */
static const unsigned char *in, *end;
static value *values[VALUES_MAX], *symbols[VALUES_MAX];
static uint32_t value_count, symbol_count;
static const unsigned char *take(size_t n) { if ((size_t)(end - in) < n) die("a term is cut off"); in += n; return in - n; }
static uint32_t take_varint(void) {
    uint32_t n = 0;
    for (int shift = 0; shift < 35; shift += 7) { unsigned b = *take(1); n |= (b & 0x7f) << shift; if (b < 0x80) return n; }
    die("a number is too long");
    return 0;
}
static value *read_value(int depth) {
    int header = *take(1);
    if (header & 0x80) { uint32_t n = take_varint(); if (n >= value_count) die("no such value"); return values[n]; }
    value *v = calloc(1, sizeof *v);
    if (!v || depth > 100 || value_count == VALUES_MAX) die("a term is too large");
    values[value_count++] = v;
    v->kind = header & 0x0f;
    if (v->kind == APPL && header & 0x40) {
        uint32_t n = take_varint();
        if (n >= symbol_count) die("no such symbol");
        memcpy(v->name, symbols[n]->name, sizeof v->name), v->count = symbols[n]->count, v->quoted = symbols[n]->quoted;
    } else if (v->kind == APPL) {
        v->count = take_varint(), v->quoted = (header & 0x20) != 0;
        uint32_t length = take_varint();
        const unsigned char *name = take(length);
        memcpy(v->name, name, length < 255 ? length : 255);
        symbols[symbol_count++] = v;
    } else if (v->kind == INT) v->number = (int32_t)take_varint();
    else if (v->kind == LONG) { const unsigned char *p = take(8); v->number = (int64_t)(u32(p) | (uint64_t)u32(p + 4) << 32); }
    else if (v->kind == REAL) take(8);
    else if (v->kind == LIST) v->count = take_varint();
    else if (v->kind == PLACEHOLDER) v->count = 1;
    else take(take_varint()); /* blobs and large integers */
    if (v->count > VALUES_MAX) die("a term is too large");
    v->parts = calloc(v->count + 1, sizeof *v->parts);
    for (uint32_t i = 0; i < v->count; i++) v->parts[i] = read_value(depth + 1);
    if (header & 0x10) read_value(depth + 1); /* annotations */
    return v;
}

static int64_t fib(int64_t n) { int64_t a = 0, b = 1; while (n-- > 0) { int64_t next = a + b; a = b, b = next; } return a; }

static void answer(uint32_t transaction, const value *asked) {
    begin(VALUE, transaction), list(1);
    if (!strcmp(asked->name, "add") && asked->count == 2) appl("sum", 1), integer(asked->parts[0]->number + asked->parts[1]->number);
    else if (!strcmp(asked->name, "fib") && asked->count == 1) appl("sum", 1), integer(fib(asked->parts[0]->number));
    else appl("tool-error", 2), string(asked->name), string("sums knows add and fib");
    send_message();
}

int main(int argc, char **argv) {
    const char *host = "127.0.0.1", *port = "", *name = "sums", *token = getenv("TB_TOKEN");
    int64_t instance = -1;
    for (int i = 1; i + 1 < argc; i++) {
        if (!strcmp(argv[i], "-TB_HOST")) host = argv[i + 1];
        if (!strcmp(argv[i], "-TB_PORT")) port = argv[i + 1];
        if (!strcmp(argv[i], "-TB_TOOL_NAME")) name = argv[i + 1];
        if (!strcmp(argv[i], "-TB_TOOL_ID")) instance = atoll(argv[i + 1]);
    }
    int here = !strcmp(host, "127.0.0.1") || !strcmp(host, "::1"); /* where a tunnel may be: this tool knows no TLS */
    if (!here && token && !strncmp(token, "echoic1.", 8)) die("a signed token goes through TLS only");
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
    if (getaddrinfo(host, port, &hints, &found)) die("no such host");
    bus = socket(found->ai_family, SOCK_STREAM, 0);
    if (connect(bus, found->ai_addr, found->ai_addrlen)) die("no bus answers");
    begin(HELLO, 0), list(6), appl("echoic-tool", 2), integer(1), integer(1), string(name), integer(instance);
    string(token ? token : ""), list(0), appl("undefined", 0), send_message();
    for (;;) {
        unsigned char header[16], *payload;
        receive(header, sizeof header);
        uint32_t length = u32(header), padded = (length + 7) / 8 * 8;
        if (header[4] != 16 || length < 8 || length > 1 << 20 || !(payload = malloc(padded))) die("this is not a bus");
        receive(payload, padded);
        uint32_t transaction = u32(payload + 4);
        value_count = symbol_count = 0, in = payload + 8, end = payload + length;
        int kind = payload[0];
        value *said = kind != INTERFACE && in < end ? read_value(0) : NULL;
        const value *first = said && said->count ? said->parts[0] : NULL;
        if (kind == INTERFACE) begin(ACCEPT, 0), send_message();
        if (kind == REFUSE) die(first ? first->name : "refused");
        if (kind == EVAL && first) answer(transaction, first);
        if (kind == DO) { if (first && first->count) printf("%s\n", first->parts[0]->name), fflush(stdout); begin(VOID, transaction), send_message(); }
        while (value_count) value_count--, free(values[value_count]->parts), free(values[value_count]);
        free(payload);
        if (kind == TERMINATE) return 0;
    }
}
