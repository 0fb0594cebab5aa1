/* test_control_frames.c: a chief among tasks, and a member under a chief, that say what they should not: messages of every kind, in every
 * state, as they are, cut, twice, in another order, too long, of another generation, with any numbers, or followed by the end of the
 * connection. Whoever hears them neither crashes nor stops to answer others, and keeps no descriptor and no memory. FLOW_CASES: how many
 * such talks are drawn, of each of the two. */
#define _GNU_SOURCE /* accept4 */
#include "control_members.h"

#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <sys/time.h>

#include "base/plugin.h"

enum { MOST_TALK = 4, MOST_BURST = 256, MOST_SECONDS = 300 };

static const char SECRET[] = "sixteen bytes or more";

/* ---- what is drawn ------------------------------------------------------------------------------------------------------------------- */

static uint64_t drawn;

/* 0 to below - 1: xorshift64 (Marsaglia 2003, "Xorshift RNGs"). */
static uint64_t draw(uint64_t below)
{
  drawn ^= drawn << 13;
  drawn ^= drawn >> 7;
  drawn ^= drawn << 17;
  return below ? (drawn >> 8) % below : 0;
}

static int cases(int usual)
{
  const char *told = getenv("FLOW_CASES");
  return told && atoi(told) > 0 ? atoi(told) : usual;
}

static int count_descriptors(void)
{
  int count = 0;
  DIR *list = opendir("/proc/self/fd");
  assert_non_null(list);
  while (readdir(list)) count++;
  closedir(list);
  return count;
}

/* ---- a raw end of a connection ------------------------------------------------------------------------------------------------------- */

typedef struct raw {
  int socket, gone;
  uint64_t number;
  flow_control_session *session;
  const flow_seal *seal;
} raw;

static const flow_control_functions *sealing; /* NULL: plain */

static void send_bytes(raw *self, const void *bytes, size_t count)
{
  if (self->gone || count == 0) return;
  self->gone = send(self->socket, bytes, count, MSG_NOSIGNAL) != (ssize_t)count;
}

static int receive_bytes(const raw *self, void *bytes, size_t count)
{
  return recv(self->socket, bytes, count, MSG_WAITALL) == (ssize_t)count;
}

/* Takes over a socket; greets. 0: the other end did not within two seconds. */
static int greet(raw *self, int socket, int dialed)
{
  uint8_t own[FLOW_GREETING_SIZE] = "flowctl1", peer[FLOW_GREETING_SIZE];
  const struct timeval patience = { .tv_sec = 2 };
  *self = (raw){ .socket = socket };
  setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  if (sealing) assert_int_equal(sealing->nonce(own + 8), FLOW_OK);
  send_bytes(self, own, sizeof own);
  if (!receive_bytes(self, peer, sizeof peer)) return 0;
  if (!sealing) return 1;
  assert_int_equal(sealing->open((const uint8_t *)SECRET, strlen(SECRET), dialed, dialed ? own + 8 : peer + 8, dialed ? peer + 8 : own + 8,
                                 &self->session),
                   FLOW_OK);
  self->seal = sealing->outgoing(self->session);
  return 1;
}

static void hang_up(raw *self)
{
  if (self->socket >= 0) close(self->socket);
  if (self->session) sealing->close(self->session);
  *self = (raw){ .socket = -1 };
}

/* The next frame, which is sealed in its turn; returns its bytes, which the caller frees. */
static uint8_t *make_frame(raw *self, const flow_control_message *message, size_t *bytes)
{
  size_t count = flow_control_size(message);
  uint8_t *contents = malloc(count), *frame = malloc(flow_frame_size(self->seal, count));
  assert_true(contents && frame);
  flow_control_write(message, contents);
  assert_int_equal(flow_frame_write(self->seal, self->number++, contents, count, frame), FLOW_OK);
  *bytes = flow_frame_size(self->seal, count);
  free(contents);
  return frame;
}

static void say(raw *self, const flow_control_message *message)
{
  size_t bytes;
  uint8_t *frame = make_frame(self, message, &bytes);
  send_bytes(self, frame, bytes);
  free(frame);
}

/* ---- messages that are not right ----------------------------------------------------------------------------------------------------- */

static uint64_t any_generation(void)
{
  const uint64_t some[] = { 0, 1, 2, 77, (uint64_t)1 << 53, (uint64_t)1 << 63, UINT64_MAX };
  return some[draw(sizeof some / sizeof *some)];
}

static double any_real(void)
{
  const double some[] = { 0, -1, 3, 0.01, 1e9, 1e300, -1e300 };
  return some[draw(sizeof some / sizeof *some)];
}

static const char *any_text(void)
{
  static char longest[FLOW_MOST_TEXT + 1];
  memset(longest, 'x', FLOW_MOST_TEXT);
  const char *const some[] = { "", "b", "m", "j", longest, "%s%n\n\033[2J" };
  return some[draw(sizeof some / sizeof *some)];
}

/* right: with the numbers that are expected now. */
static flow_control_message any_message(int right)
{
  static uint8_t value[FLOW_MOST_VALUE];
  const uint32_t sizes[] = { 0, 1, 4, 7, 8, 12, 4096, FLOW_MOST_VALUE };
  for (int i = 0; i < 16; i++) value[i] = (uint8_t)draw(4);
  flow_control_message message = {
    .kind = 1 + (int)draw(FLOW_MESSAGE_KINDS - 1),
    .request = (uint32_t)draw(5),
    .task = (int32_t)draw(4),
    .generation = 1,
    .step = 1,
    .seconds = 0.05,
    .name = "b",
    .extra = "j",
    .text = "1",
    .value = value,
    .bytes = sizes[draw(sizeof sizes / sizeof *sizes)],
  };
  if (right) return message;
  if (draw(2)) message.generation = any_generation();
  if (draw(3) == 0) message.task = (int32_t)draw(UINT32_MAX);
  if (draw(3) == 0) message.request = (uint32_t)draw(UINT32_MAX);
  if (draw(3) == 0) message.step = any_real();
  if (draw(3) == 0) message.seconds = any_real();
  if (draw(3) == 0) message.name = any_text();
  if (draw(3) == 0) message.extra = any_text();
  if (draw(3) == 0) message.text = any_text();
  return message;
}

enum { WHOLE, CUT, TWICE, AGAIN, EXCHANGED, TOO_LONG, CHANGED, IN_PIECES, HALF_CLOSED, MANY, WAYS };

static void send_pieces(raw *self, const uint8_t *frame, size_t bytes)
{
  for (size_t at = 0, piece; at < bytes && at < 4096; at += piece) {
    piece = 1 + draw(bytes / 8 + 1);
    if (piece > bytes - at) piece = bytes - at;
    send_bytes(self, frame + at, piece);
    if (draw(4) == 0) usleep(200);
  }
}

static void misbehave(raw *self)
{
  const flow_control_message first = any_message(draw(2) != 0), second = any_message(draw(2) != 0);
  const int way = (int)draw(WAYS);
  size_t bytes, others;
  uint8_t *frame = make_frame(self, &first, &bytes), *other = way == EXCHANGED ? make_frame(self, &second, &others) : NULL;
  if (way == TOO_LONG) frame[2 + draw(2)] = (uint8_t)(2 + draw(250));
  if (way == CHANGED) frame[draw(bytes)] ^= (uint8_t)(1 + draw(255));
  if (other) send_bytes(self, other, others);
  if (way == IN_PIECES) send_pieces(self, frame, bytes);
  else send_bytes(self, frame, way == CUT || way == HALF_CLOSED ? draw(bytes) : bytes);
  if (way == TWICE) send_bytes(self, frame, bytes);
  if (way == HALF_CLOSED) shutdown(self->socket, SHUT_WR);
  if (way == AGAIN) say(self, &first);
  for (int i = 0; way == MANY && i < MOST_BURST && first.bytes < 100; i++) say(self, &first);
  free(frame);
  free(other);
  if (draw(2)) usleep((useconds_t)draw(2000));
}

/* ---- the chief hears tasks ----------------------------------------------------------------------------------------------------------- */

static int call(int port)
{
  struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((uint16_t)port) };
  int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_true(descriptor >= 0);
  if (connect(descriptor, (struct sockaddr *)&to, sizeof to) == 0) return descriptor;
  close(descriptor);
  return -1;
}

/* Of the cluster that begin() has made. */
static void say_hello(raw *self, int task, uint64_t incarnation)
{
  char hash[24], value[1000];
  flow_text list = flow_text_into(value, sizeof value);
  flow_cluster_hash(members[0].cluster, hash, sizeof hash);
  flow_text_add(&list, "process 1 on h\n");
  flow_cluster_list(members[0].cluster, &list);
  say(self, &(flow_control_message){
                .kind = FLOW_MESSAGE_HELLO,
                .request = FLOW_PROTOCOL_VERSION,
                .task = task,
                .incarnation = incarnation,
                .name = hash,
                .extra = "j",
                .text = "1",
                .value = (const uint8_t *)value,
                .bytes = (uint32_t)strlen(value) });
}

/* The chief's program (crashes: it goes to a barrier): it joins, as often as a generation ends, until it is interrupted. */
static void *lead(void *argument)
{
  member *self = argument;
  flow_status status = FLOW_OK;
  while (status == FLOW_OK) {
    int culprit;
    status = flow_control_join(self->control, 0, "m", &self->generation);
    if (status == FLOW_OK && self->crashes) status = flow_control_barrier(self->control, "b", 0.05);
    if (status == FLOW_INVALID_STATE) status = FLOW_OK;
    while (status == FLOW_OK && flow_control_check(self->control, &culprit) == FLOW_OK) {
      if (flow_interrupted(self->control->context)) return NULL;
      usleep(500);
    }
    if (status == FLOW_OK && flow_control_has_ended(self->control)) return NULL;
  }
  return NULL;
}

/* How far the tasks come before they misbehave. */
enum { SILENT, GREETED, JOINED, RUNNING, FINISHED, STATES };

static void come_to(raw tasks[2], int state)
{
  for (int i = 0; i < 2; i++) {
    const flow_control_message join = { .kind = FLOW_MESSAGE_JOIN, .name = "m" };
    if (state >= GREETED) say_hello(&tasks[i], i + 1, (uint64_t)i + 7);
    if (state >= RUNNING || (state == JOINED && i == 0)) say(&tasks[i], &join);
  }
  if (state >= RUNNING) usleep(2000);
  if (state >= FINISHED) say(&tasks[0], &(flow_control_message){ .kind = FLOW_MESSAGE_GOODBYE, .generation = 1 });
}

/* A new caller is greeted, unless all has ended: nobody listens then. */
static void expect_alive(member *chief, uint64_t seed)
{
  raw other;
  int socket = flow_control_has_ended(chief->control) ? -1 : call(port_of(0));
  if (socket < 0) return;
  if (!greet(&other, socket, 1) && !flow_control_has_ended(chief->control)) fail_msg("talk %.0f: the chief is silent", (double)seed);
  hang_up(&other);
}

static void talk_to_chief(flow_context *context, uint64_t seed)
{
  raw tasks[2];
  drawn = seed * 0x9e3779b97f4a7c15u;
  const int state = (int)draw(STATES), talk = 1 + (int)draw(MOST_TALK);
  begin(sealing ? SECRET : NULL);
  member *chief = &members[0];
  chief->crashes = draw(3) == 0;
  if (open_member(chief) != FLOW_OK) fail_msg("%s", flow_last_error());
  flow_control_watch(chief->control, context, NULL, NULL, NULL);
  flow_interrupt(context, 0);
  assert_int_equal(pthread_create(&chief->thread, NULL, lead, chief), 0);
  for (int i = 0; i < 2; i++) assert_true(greet(&tasks[i], call(port_of(0)), 1));
  come_to(tasks, state);
  for (int i = 0; i < talk; i++) misbehave(&tasks[draw(2)]);
  expect_alive(chief, seed);
  for (int i = 0; i < 2; i++) hang_up(&tasks[i]);
  flow_interrupt(context, 1);
  pthread_join(chief->thread, NULL);
  end();
}

/* ---- a member hears its chief -------------------------------------------------------------------------------------------------------- */

static int listen_as_chief(void)
{
  struct sockaddr_in own = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((uint16_t)port_of(0)) };
  int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
  setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  assert_int_equal(bind(descriptor, (struct sockaddr *)&own, sizeof own), 0);
  assert_int_equal(listen(descriptor, 8), 0);
  return descriptor;
}

/* The member's program, until it is interrupted. */
static void *follow(void *argument)
{
  member *self = argument;
  uint8_t value[8];
  uint32_t bytes;
  ASK(flow_control_join(self->control, 0, "m", &self->generation));
  flow_control_get(self->control, "k", 0.05, value, sizeof value, &bytes);
  flow_control_barrier(self->control, "b", 0.05);
  ASK(flow_control_goodbye(self->control, 0));
  return NULL;
}

static void lead_to(raw *chief, int state)
{
  const flow_control_message welcome = { .kind = FLOW_MESSAGE_WELCOME, .incarnation = 5 };
  const flow_control_message start = { .kind = FLOW_MESSAGE_START, .generation = 1, .incarnation = 5, .step = 0 };
  if (state >= GREETED) say(chief, &welcome);
  if (state >= JOINED) usleep(2000);
  if (state >= RUNNING) say(chief, &start);
  for (uint32_t request = 1; state >= FINISHED && request <= 2; request++) {
    say(chief, &(flow_control_message){ .kind = FLOW_MESSAGE_RESULT, .request = request, .generation = 1, .text = "" });
    usleep(2000);
  }
}

static void talk_to_member(flow_context *context, uint64_t seed)
{
  raw chief;
  drawn = seed * 0x9e3779b97f4a7c15u + 1;
  const int state = (int)draw(STATES), talk = 1 + (int)draw(MOST_TALK);
  begin(sealing ? SECRET : NULL);
  member *self = &members[1];
  int listener = listen_as_chief();
  if (open_member(self) != FLOW_OK) fail_msg("%s", flow_last_error());
  flow_control_watch(self->control, context, NULL, NULL, NULL);
  flow_interrupt(context, 0);
  assert_int_equal(pthread_create(&self->thread, NULL, follow, self), 0);
  struct pollfd polled = { .fd = listener, .events = POLLIN };
  assert_int_equal(poll(&polled, 1, 5000), 1);
  assert_true(greet(&chief, accept4(listener, NULL, NULL, SOCK_CLOEXEC), 0));
  lead_to(&chief, state);
  for (int i = 0; i < talk; i++) misbehave(&chief);
  hang_up(&chief);
  close(listener);
  flow_interrupt(context, 1);
  pthread_join(self->thread, NULL);
  end();
}

/* ---- tests --------------------------------------------------------------------------------------------------------------------------- */

/* A talk that is not over within MOST_SECONDS ends the program, with its number. */
static uint64_t under_way;

static void end_program(int signal)
{
  char text[80];
  (void)signal;
  int length = snprintf(text, sizeof text, "talk %.0f does not end\n", (double)under_way);
  ssize_t written = write(2, text, (size_t)length);
  (void)written;
  abort();
}

static void talk(void (*one)(flow_context *context, uint64_t seed), int usual)
{
  flow_context *context;
  assert_int_equal(flow_context_new(&context), FLOW_OK);
  one(context, 1); /* what is taken once per process */
  const double bytes = flow_live_bytes();
  const int descriptors = count_descriptors(), count = cases(usual);
  signal(SIGALRM, end_program);
  for (int i = 1; i <= count; i++) {
    under_way = (uint64_t)i;
    alarm(MOST_SECONDS);
    one(context, (uint64_t)i);
    alarm(0);
    if (count_descriptors() != descriptors) fail_msg("talk %d leaves %d descriptors", i, count_descriptors() - descriptors);
    if (flow_live_bytes() != bytes) fail_msg("talk %d leaves %.0f bytes", i, flow_live_bytes() - bytes);
  }
  flow_context_release(context);
}

static void test_chief(void **state)
{
  (void)state;
  sealing = NULL;
  talk(talk_to_chief, 150);
}

static void test_member(void **state)
{
  (void)state;
  sealing = NULL;
  talk(talk_to_member, 100);
}

static int set_sealing(void)
{
  const flow_plugin *plugin;
  if (flow_plugin_open("control", &plugin) != FLOW_OK) {
    print_message("pending: %s\n", flow_last_error());
    return 0;
  }
  sealing = plugin->functions;
  return 1;
}

static void test_sealed_chief(void **state)
{
  (void)state;
  if (!set_sealing()) skip();
  talk(talk_to_chief, 100);
}

static void test_sealed_member(void **state)
{
  (void)state;
  if (!set_sealing()) skip();
  talk(talk_to_member, 50);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_chief),
    cmocka_unit_test(test_member),
    cmocka_unit_test(test_sealed_chief),
    cmocka_unit_test(test_sealed_member),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
