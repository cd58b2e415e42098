/* Runs in the guest: `window COMMAND...` opens a window of the plugin, runs the command as the client, waits until the server has
 * come to rest and closes the window; then it prints the pages the kernel has allocated within it. The command's status is its own.
 *
 * `window --known N` does N times a work that is known exactly, to check the plugin by. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "marks.h"

/* The settling of a connection's end takes timers of 40 ms and one of 200 ms; an emulated idle processor skips the wait. */
static void rest(void)
{
    struct timespec left = { .tv_nsec = 300 * 1000 * 1000 };
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
}

/* The sum of the `pgalloc_` lines of /proc/vmstat. */
static long pages_allocated(void)
{
    long sum = 0, value;
    char name[64];
    FILE *file = fopen("/proc/vmstat", "r");
    while (file && fscanf(file, "%63s %ld", name, &value) == 2)
        if (strncmp(name, "pgalloc_", 8) == 0)
            sum += value;
    if (file)
        fclose(file);
    return sum;
}

static char copied_from[8192], copied_to[8192];

/* One turn, counted at the right; `rep` itself is not among the instructions. */
static void known(long turns)
{
    __asm__ volatile(
        "1: mov $1000, %%ecx\n 2: dec %%ecx\n jnz 2b\n"                          /* 2,001 instructions */
        "mov %[from], %%rsi\n mov %[to], %%rdi\n mov $512, %%ecx\n rep movsq\n" /* 3; 4,096 bytes copied */
        "mov $100, %%ecx\n rep movsb\n"                                         /* 1; 100 bytes copied */
        "mov %[to], %%rdi\n mov $512, %%ecx\n rep stosl\n"                      /* 2; 2,048 bytes filled */
        ".rept 9\n aesenc %%xmm0, %%xmm1\n .endr\n aesenclast %%xmm0, %%xmm1\n" /* 10; 1 block */
        "vaesenclast %%ymm0, %%ymm0, %%ymm1\n"                                   /* 1; 2 blocks */
        "mov %[call], %%eax\n syscall\n"                                        /* 2; 1 call */
        "dec %[turns]\n jnz 1b\n"                                               /* 2 */
        : [turns] "+r"(turns)
        : [from] "r"(copied_from), [to] "r"(copied_to), [call] "i"(SYS_getppid)
        : "rax", "rcx", "rsi", "rdi", "r11", "xmm0", "xmm1", "memory", "cc");
}

int main(int argc, char **argv)
{
    int is_known = argc == 3 && strcmp(argv[1], "--known") == 0;
    int status = 0;
    if (argc < 2)
        return 2;
    rest();
    long before = pages_allocated();
    MARK(MARK_OPEN);
    pid_t child = fork();
    if (child == 0) {
        MARK(MARK_CLIENT);
        if (is_known) {
            known(atol(argv[2]));
            _exit(0);
        }
        execvp(argv[1], argv + 1);
        _exit(127);
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        return 125;
    rest();
    MARK(MARK_CLOSE);
    printf("%ld\n", pages_allocated() - before);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 126;
}
