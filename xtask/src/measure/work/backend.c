/* Runs in the guest: the plain server behind tunnels, on 127.0.0.1:8080. It answers `GET /N` with N KiB and any other request, once it
 * has read its body, with nothing; one connection after the other. Its work is the client's: each request renews the mark, since a
 * window that opens forgets who is who. */

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "marks.h"

enum { KIBIBYTES_MAX = 10240 };
static char body[KIBIBYTES_MAX * 1024];
static char received[64 * 1024];

/* Sends all of it. */
static int answer(int connection, struct iovec *pieces)
{
    while (pieces[0].iov_len + pieces[1].iov_len > 0) {
        ssize_t sent = writev(connection, pieces, 2);
        if (sent <= 0)
            return -1;
        for (int piece = 0; piece < 2; piece++) {
            size_t part = (size_t)sent < pieces[piece].iov_len ? (size_t)sent : pieces[piece].iov_len;
            pieces[piece].iov_base = (char *)pieces[piece].iov_base + part;
            pieces[piece].iov_len -= part;
            sent -= part;
        }
    }
    return 0;
}

/* Receives one request with its body and answers it. */
static int serve(int connection)
{
    size_t filled = 0;
    char *end = NULL, *length;
    while (!end) {
        ssize_t count = read(connection, received + filled, sizeof received - 1 - filled);
        MARK(MARK_CLIENT);
        if (count <= 0)
            return -1;
        filled += count;
        received[filled] = 0;
        end = strstr(received, "\r\n\r\n");
    }
    *end = 0;
    long kibibytes = strncmp(received, "GET /", 5) == 0 ? atol(received + 5) : 0;
    long left = (length = strcasestr(received, "content-length:")) ? atol(length + 15) : 0;
    left -= received + filled - (end + 4);
    while (left > 0) {
        ssize_t count = read(connection, received, sizeof received);
        if (count <= 0)
            return -1;
        left -= count;
    }
    if (left < 0 || kibibytes < 0 || kibibytes > KIBIBYTES_MAX)
        return -1;
    char head[64];
    int bytes = snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nContent-Length: %ld\r\n\r\n", kibibytes * 1024);
    return answer(connection, (struct iovec[]){ { head, bytes }, { body, kibibytes * 1024 } });
}

int main(void)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(8080), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    memset(body, 'k', sizeof body);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) != 0 || listen(listener, 8) != 0)
        return 1;
    for (;;) {
        int connection = accept(listener, NULL, NULL);
        while (serve(connection) == 0)
            ;
        close(connection);
    }
}
