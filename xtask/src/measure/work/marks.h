/* The marks a program of the guest makes for the plugin: `nopl MARK_MAGIC+n(%rax)`, which does nothing on any processor. */

#define MARK_MAGIC 0x6b747400u

#define MARK_OPEN 1   /* a window begins; who makes the mark is the client */
#define MARK_CLOSE 2  /* it ends */
#define MARK_CLIENT 3 /* who makes the mark is the client too */

#define MARK(number) __asm__ volatile(".byte 0x0f, 0x1f, 0x80\n.long %c0" :: "i"(MARK_MAGIC + (number)) : "memory")
