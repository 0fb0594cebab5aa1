/* core/cluster/servers: parameter servers, which keep the variables of an asynchronous training. server.c is the end that listens,
 * server_link.c a worker's end; both hold channels. What messages mean is Lua's (lua/flow/distribute/servers/task.lua). Uses base, cluster,
 * control's links, and memory that processes share, of transport.
 *
 * channel.h: messages over a link (control/link.h). A message is a text, in a frame that is sealed where there is a secret, and bytes after
 * it: numbers of variables, which travel as they are, or are in memory that both processes share. Only the task that sealed the frame can
 * begin a message; the bytes themselves are not sealed, as those of sums are not. In each direction one message is under way at a time.
 *
 * Bytes in shared memory can be announced before they are there: the sender copies them in piece after piece and says after each how far it
 * is, and the receiver copies them out meanwhile. */
#ifndef FLOW_CLUSTER_SERVERS_CHANNEL_H
#define FLOW_CLUSTER_SERVERS_CHANNEL_H

#include "cluster/control/link.h"

enum { FLOW_CHANNEL_TEXT = 60000, FLOW_CHANNEL_READ = 65536 };       /* bytes of a text at most; that are read at once */

/* Where the bytes of a message are: `count` pieces one after the other. */
typedef struct flow_pieces { const void *const *at; const int64_t *bytes; int count; } flow_pieces;

/* Where the bytes of a message belong, likewise. */
typedef struct flow_places { char *const *at; const int64_t *bytes; int count; } flow_places;

typedef struct flow_channel {
  flow_link     *link;
  const uint8_t *text;             /* of the message that has come; with a zero after its last byte */
  size_t         text_bytes;
  char          *bulk;             /* its bytes: in `room`, or in `region`; NULL: in the places where they were expected */
  int64_t        bulk_bytes, received, most;       /* most: of a message, else the peer is refused */
  /* `text` is set when the frame of a message has come, `complete` when all its bytes are there, too: received == bulk_bytes. */
  int            complete;         /* a message is there */
  char          *room;
  int64_t        room_bytes;
  char          *words;            /* the text's copy */
  uint8_t       *frame;            /* room for what a frame has of the message that goes out */
  uint8_t       *read;             /* bytes that were read and are not yet taken: read[first .. filled) */
  size_t         first, filled;
  /* sending[sent .. sending_bytes) still has to go, after what the link has; none of a message whose bytes go through the region. */
  char          *sending;          /* a copy of the bytes of the message that goes out */
  int64_t        sending_room, sending_bytes, sent;
  /* Both directions use it: a message in it is taken before the answer is written there, since a link asks and waits. */
  char          *region;           /* memory of both processes, or NULL */
  int64_t        region_bytes;
  int            streams;          /* what goes out through the region is announced before it is there */
  int            source;           /* where the bytes of the message that has come are: flow_channel_bytes of channel.c */
  flow_places    into;             /* count 0: nowhere in particular */
  int            place;            /* the next byte belongs to into.at[place] + place_filled */
  int64_t        place_filled;
} flow_channel;

/* Takes over the descriptor, as flow_link_new. until: by then it has to have greeted (flow_opening_now). `most` is 0: no message with
 * bytes is taken before the caller sets it. */
flow_status flow_channel_new(int descriptor, int dialed, const flow_control_functions *control, double until, flow_channel **out);
void        flow_channel_release(flow_channel *channel);           /* closes at once; NULL is fine */
/* What to poll for. */
short       flow_channel_events(const flow_channel *channel);
/* After poll: greets, sends and receives what can be. After a failure the channel cannot be used any more. FLOW_IO_ERROR: the other end has
 * gone; FLOW_CORRUPT_DATA: it sent an invalid message. */
flow_status flow_channel_advance(flow_channel *channel, const flow_secret *secret);
int         flow_channel_is_open(const flow_channel *channel);
/* Whether all that was sent has left this process. */
int         flow_channel_is_sent(const flow_channel *channel);
/* The bytes are copied. The message before has to be sent. FLOW_INVALID_ARGUMENT: the text is too long. */
flow_status flow_channel_send(flow_channel *channel, const char *text, size_t text_bytes, const flow_pieces *pieces);
/* If the next message has as many bytes as these places have, they go there, as they come; else as if nothing was expected. The lists and
 * the places are borrowed until flow_channel_next. */
void        flow_channel_expect(flow_channel *channel, const flow_places *places);
/* A message was announced, and its bytes come through memory, which nothing can be polled for. */
int         flow_channel_is_streaming(const flow_channel *channel);
/* The message that has come is done with: its text and bytes are gone. */
void        flow_channel_next(flow_channel *channel);
/* This many bytes of memory for messages, which the other process opens by what is written to `where`; or opens it. The file's descriptor
 * is the caller's to close. FLOW_UNSUPPORTED: processes share none here. */
flow_status flow_channel_make_region(flow_channel *channel, int64_t bytes, char *where, size_t size, int *descriptor);
flow_status flow_channel_open_region(flow_channel *channel, int64_t bytes, const char *where);
/* Messages go through the connection again. */
void        flow_channel_leave_region(flow_channel *channel);

#endif
