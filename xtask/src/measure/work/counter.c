/* A plugin for QEMU's emulator that counts the work a guest does between two marks, by the task that did it: instructions in user
 * space and in the kernel, bytes that string instructions copied and filled, AES blocks, system calls, and how often a task was
 * switched to. `window.c` makes the marks; docs/work.md says what the figures mean and how they are checked.
 *
 * One line a window goes to the file named by `out=`. Counting is exact on one processor and with `-icount` only. */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "marks.h"

/* The part of QEMU's plugin interface used here, version 1 (QEMU 4.2 to 8.1). Debian packages no header for it. */
typedef uint64_t qemu_plugin_id_t;
typedef struct qemu_info_t qemu_info_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS };
enum qemu_plugin_op { QEMU_PLUGIN_INLINE_ADD_U64 };
enum qemu_plugin_mem_rw { QEMU_PLUGIN_MEM_RW = 3 };
typedef void (*on_translation)(qemu_plugin_id_t, struct qemu_plugin_tb *);
typedef void (*on_execution)(unsigned int cpu, void *data);
typedef void (*on_access)(unsigned int cpu, uint32_t info, uint64_t address, void *data);
typedef void (*on_end)(qemu_plugin_id_t, void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *);
bool qemu_plugin_mem_is_store(uint32_t info);
unsigned int qemu_plugin_mem_size_shift(uint32_t info);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, on_translation);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *, on_execution, enum qemu_plugin_cb_flags, void *);
void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *, enum qemu_plugin_op, void *, uint64_t);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *, on_access, enum qemu_plugin_cb_flags, enum qemu_plugin_mem_rw, void *);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t, on_end, void *);

#define EXPORTED __attribute__((visibility("default")))
EXPORTED int qemu_plugin_version = 1;

/* What is counted, in the kernel and in user space apart. */
enum count {
    INSTRUCTIONS, /* all but string instructions that repeat */
    REPEATS,      /* steps of those: the emulator counts each as an instruction, hardware does not */
    COPIED,       /* bytes written by MOVS */
    FILLED,       /* bytes written by STOS */
    AES_BLOCKS,   /* last rounds, one for each block */
    AES_ROUNDS,   /* all rounds */
    CALLS,        /* SYSCALL */
    COUNTS
};
static const char *const COUNT_NAMES[COUNTS] = { "instructions", "repeats", "copied", "filled", "blocks", "rounds", "calls" };

enum { KERNEL, USER, MODES };
static const char *const MODE_NAMES[MODES] = { "kernel", "user" };

struct work { uint64_t of[MODES][COUNTS]; };

/* Who does the work. The server is told by exclusion: within a window nobody else runs in user space. */
enum group { CLIENT, SERVER, REST, GROUPS };
static const char *const GROUP_NAMES[GROUPS] = { "client", "server", "rest" };

struct task {
    uint64_t address; /* of the kernel's `thread.sp` for it, which is as good as a name */
    bool is_client;
    uint64_t switches;
    struct work work;
};

enum { TASKS_MAX = 512 };
static struct task tasks[TASKS_MAX];
static size_t task_count;
static size_t current;
static uint64_t switch_instruction;
static const char *trouble;

static struct work running; /* what the processor has done, ever */
static struct work charged; /* of that, what a task has been charged with */
static bool is_open;
static unsigned int windows;
static FILE *out;

/* Charges the current task with what was done since the last charge. */
static void charge(void)
{
    for (int mode = 0; mode < MODES; mode++)
        for (int count = 0; count < COUNTS; count++)
            tasks[current].work.of[mode][count] += running.of[mode][count] - charged.of[mode][count];
    charged = running;
}

static void switch_to(unsigned int cpu, uint32_t info, uint64_t address, void *data)
{
    (void)cpu, (void)info, (void)data;
    charge();
    size_t next = 0;
    while (next < task_count && tasks[next].address != address)
        next++;
    if (next == TASKS_MAX) {
        trouble = "more tasks than the plugin has room for";
        return;
    }
    if (next == task_count) {
        task_count++;
        tasks[next] = (struct task){ .address = address };
    }
    tasks[next].switches++;
    current = next;
}

static void open_window(void)
{
    if (is_open)
        trouble = "a window was opened within another";
    charge();
    /* Addresses of tasks that have ended are used again, so nothing is kept but the one that runs. */
    tasks[0] = (struct task){ .address = tasks[current].address, .is_client = true };
    task_count = 1;
    current = 0;
    is_open = true;
}

static enum group group_of(const struct task *task)
{
    if (task->is_client)
        return CLIENT;
    return task->work.of[USER][INSTRUCTIONS] > 0 ? SERVER : REST;
}

static void close_window(void)
{
    charge();
    if (!is_open)
        trouble = "a window was closed that was not open";
    if (switch_instruction == 0)
        trouble = "the kernel's switch from task to task was not found";
    struct work sums[GROUPS] = { 0 };
    uint64_t switches[GROUPS] = { 0 }, members[GROUPS] = { 0 };
    for (size_t task = 0; task < task_count; task++) {
        enum group group = group_of(&tasks[task]);
        switches[group] += tasks[task].switches;
        members[group]++;
        for (int mode = 0; mode < MODES; mode++)
            for (int count = 0; count < COUNTS; count++)
                sums[group].of[mode][count] += tasks[task].work.of[mode][count];
    }
    fprintf(out, "WINDOW %u", ++windows);
    for (int group = 0; group < GROUPS; group++) {
        fprintf(out, " %s.tasks=%lu %s.switches=%lu", GROUP_NAMES[group], members[group], GROUP_NAMES[group], switches[group]);
        for (int mode = 0; mode < MODES; mode++)
            for (int count = 0; count < COUNTS; count++)
                fprintf(out, " %s.%s.%s=%lu", GROUP_NAMES[group], MODE_NAMES[mode], COUNT_NAMES[count], sums[group].of[mode][count]);
    }
    fprintf(out, "\n");
    if (trouble)
        fprintf(out, "TROUBLE %s\n", trouble);
    fflush(out);
    is_open = false;
}

static void take_mark(unsigned int cpu, void *data)
{
    (void)cpu;
    switch ((uintptr_t)data) {
    case MARK_OPEN: open_window(); break;
    case MARK_CLOSE: close_window(); break;
    case MARK_CLIENT: tasks[current].is_client = true; break;
    default: trouble = "an unknown mark"; break;
    }
}

/* An access of a string instruction; what it has read is no news. QEMU 7.2 calls back for loads when asked for stores only, so
 * both are asked for everywhere. */
static void store(unsigned int cpu, uint32_t info, uint64_t address, void *counter)
{
    (void)cpu, (void)address;
    if (qemu_plugin_mem_is_store(info))
        *(uint64_t *)counter += UINT64_C(1) << qemu_plugin_mem_size_shift(info);
}

/* What the plugin needs to know of an instruction. */
struct decoded {
    bool is_repeated;
    unsigned int opcode;   /* in the one-byte map */
    unsigned int opcode2;  /* after 0F */
    unsigned int aes;      /* after 66 0F 38, DC to DF */
    unsigned int lanes;    /* blocks an AES instruction works on */
};

static bool is_prefix(uint8_t byte)
{
    return strchr("\x66\x67\x2e\x36\x3e\x26\x64\x65\xf0\xf2\xf3", byte) && byte;
}

static struct decoded decode(const uint8_t *byte, size_t size)
{
    struct decoded it = { .lanes = 1 };
    const uint8_t *end = byte + size;
    bool has_66 = false;
    for (; byte < end && is_prefix(*byte); byte++) {
        it.is_repeated |= *byte == 0xf2 || *byte == 0xf3;
        has_66 |= *byte == 0x66;
    }
    if (end - byte >= 5 && byte[0] == 0xc4 && (byte[1] & 0x1f) == 2 && (byte[2] & 3) == 1) { /* VEX, map 0F38, 66 */
        it.aes = byte[3];
        it.lanes = byte[2] & 4 ? 2 : 1;
        it.opcode = 0xc4;
        return it;
    }
    if (end - byte >= 6 && byte[0] == 0x62 && (byte[1] & 7) == 2 && (byte[2] & 3) == 1) { /* EVEX, the same */
        it.aes = byte[4];
        it.lanes = 1 << (byte[3] >> 5 & 3);
        it.opcode = 0x62;
        return it;
    }
    if (byte < end && (*byte & 0xf0) == 0x40) /* REX */
        byte++;
    if (byte < end)
        it.opcode = *byte++;
    if (it.opcode == 0x0f && byte < end)
        it.opcode2 = *byte++;
    if (it.opcode2 == 0x38 && has_66 && byte < end)
        it.aes = *byte;
    return it;
}

static bool is_string(unsigned int opcode)
{
    return (opcode >= 0xa4 && opcode <= 0xa7) || (opcode >= 0xaa && opcode <= 0xaf);
}

/* `mov disp32(%rsi),%rsp`: only `__switch_to_asm` takes its stack from a structure, the next task's, right after it has stored
 * the old one with `mov %rsp,disp32(%rdi)`. */
static bool is_switch(const uint8_t *byte, size_t size, uint64_t address)
{
    if (size != 7 || address >> 63 == 0 || memcmp(byte, "\x48\x8b\xa6", 3) != 0)
        return false;
    if (switch_instruction != 0 && switch_instruction != address)
        trouble = "two places look like the kernel's switch from task to task";
    switch_instruction = address;
    return true;
}

static void add(struct qemu_plugin_insn *insn, uint64_t *counter, uint64_t amount)
{
    qemu_plugin_register_vcpu_insn_exec_inline(insn, QEMU_PLUGIN_INLINE_ADD_U64, counter, amount);
}

static void instrument(struct qemu_plugin_insn *insn)
{
    const uint8_t *byte = qemu_plugin_insn_data(insn);
    size_t size = qemu_plugin_insn_size(insn);
    uint64_t address = qemu_plugin_insn_vaddr(insn);
    uint64_t *counts = running.of[address >> 63 ? KERNEL : USER];
    struct decoded it = decode(byte, size);

    add(insn, &counts[it.is_repeated && is_string(it.opcode) ? REPEATS : INSTRUCTIONS], 1);
    if (it.opcode == 0xa4 || it.opcode == 0xa5)
        qemu_plugin_register_vcpu_mem_cb(insn, store, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW, &counts[COPIED]);
    if (it.opcode == 0xaa || it.opcode == 0xab)
        qemu_plugin_register_vcpu_mem_cb(insn, store, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW, &counts[FILLED]);
    if (it.aes >= 0xdc && it.aes <= 0xdf) {
        add(insn, &counts[AES_ROUNDS], it.lanes);
        if (it.aes & 1)
            add(insn, &counts[AES_BLOCKS], it.lanes);
    }
    if (it.opcode == 0x0f && it.opcode2 == 0x05)
        add(insn, &counts[CALLS], 1);
    if (is_switch(byte, size, address))
        qemu_plugin_register_vcpu_mem_cb(insn, switch_to, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW, NULL);
    uint32_t operand = 0;
    if (size == 7 && address >> 63 == 0 && memcmp(byte, "\x0f\x1f\x80", 3) == 0)
        memcpy(&operand, byte + 3, sizeof operand);
    if ((operand & ~0xffu) == MARK_MAGIC)
        qemu_plugin_register_vcpu_insn_exec_cb(insn, take_mark, QEMU_PLUGIN_CB_NO_REGS, (void *)(uintptr_t)(operand & 0xff));
}

static void translate(qemu_plugin_id_t id, struct qemu_plugin_tb *block)
{
    (void)id;
    for (size_t position = 0; position < qemu_plugin_tb_n_insns(block); position++)
        instrument(qemu_plugin_tb_get_insn(block, position));
}

static void finish(qemu_plugin_id_t id, void *data)
{
    (void)id, (void)data;
    fprintf(out, is_open ? "TROUBLE the last window was never closed\n" : "END %u\n", windows);
    fclose(out);
}

EXPORTED int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv)
{
    (void)info;
    if (argc != 1 || strncmp(argv[0], "out=", 4) != 0 || !(out = fopen(argv[0] + 4, "w"))) {
        fprintf(stderr, "counter: wants out=FILE, a file it may write\n");
        return 1;
    }
    task_count = 1; /* whoever runs before the first switch */
    qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
    qemu_plugin_register_atexit_cb(id, finish, NULL);
    return 0;
}
