/* tree.c: the names of a writer's tensors, notes and groups as a tree in HDF5's order: a group's links sorted by their
 * bytes.
 *
 * Every path that anything has, and every parent of it, is mentioned once each time; sorted, the mentions of one path
 * are neighbours and become one node, and what is below a group follows it directly. So a node needs no list of
 * children: they are the nodes up to `end`. */
#include "io/hdf5/plan.h"

#include <stdlib.h>
#include <string.h>
#include "base/memory.h"

enum { MOST_KEY = 60000 };

/* A path as it was named: by a tensor, by a note, as a group, or as the parent of one of those. */
typedef struct mention { const char *path; int length, order, item, note, is_group; } mention;
typedef struct mentions { mention *list; int count, capacity; } mentions;

/* By parts: a slash comes before every other byte, so that what is below a path follows it at once. */
static int compare_paths(const mention *a, const mention *b)
{
  int length = a->length < b->length ? a->length : b->length;
  for (int i = 0; i < length; i++) {
    int x = a->path[i] == '/' ? 0 : (unsigned char)a->path[i], y = b->path[i] == '/' ? 0 : (unsigned char)b->path[i];
    if (x != y) return x - y;
  }
  return a->length - b->length;
}

/* By the order in which they were mentioned where paths are equal, which makes the result independent of qsort. */
static int compare_mentions(const void *a, const void *b)
{
  const mention *x = a, *y = b;
  int order = compare_paths(x, y);
  return order ? order : x->order - y->order;
}

static flow_status fail_path(const char *path, const char *fault)
{
  return flow_fail(FLOW_INVALID_ARGUMENT, "'%.200s' cannot be a path in an HDF5 file: %s", path, fault);
}

/* Mentions a path and its parents. The path is borrowed; parents are the same text with a shorter length. "" is the root
 * and mentions nothing but itself. */
static flow_status mention_path(mentions *all, const char *path, int item, int note, int is_group)
{
  size_t length = strlen(path);
  int depth = 0;
  if (length > FLOW_HDF5_MOST_PATH) return fail_path(path, "it is longer than 4,096 bytes");
  for (size_t start = 0; length > 0;) {
    size_t part = strcspn(path + start, "/");
    if (part == 0) return fail_path(path, "it has an empty part");
    if (part == 1 && path[start] == '.') return fail_path(path, "it has a part \".\"");
    if (++depth >= FLOW_HDF5_MOST_DEPTH) return fail_path(path, "it has more than 62 parts in front of the last");
    start += part;
    if (!path[start]) break;
    FLOW_TRY(flow_grow(&all->list, sizeof *all->list, all->count + 1, &all->capacity));
    all->list[all->count] = (mention){ path, (int)start, all->count, -1, -1, 1 };
    all->count++;
    start++;
  }
  FLOW_TRY(flow_grow(&all->list, sizeof *all->list, all->count + 1, &all->capacity));
  all->list[all->count] = (mention){ path, (int)length, all->count, item, note, is_group };
  all->count++;
  return FLOW_OK;
}

/* The notes of the file: the writer's, and for each bfloat16 tensor its dtype, as Keras has it. */
static flow_status collect_notes(const flow_tensor_writer *writer, flow_hdf5_plan *plan, mentions *all)
{
  for (int i = 0; i < writer->note_count + writer->item_count; i++) {
    int own = i < writer->note_count;
    const flow_writer_item *item = own ? NULL : &writer->items[i - writer->note_count];
    if (!own && item->tensor->dtype != FLOW_BFLOAT16) continue;
    flow_hdf5_note note = { .key = own ? writer->notes[i].key : "dtype", .text = own ? writer->notes[i].text : "bfloat16", .next = -1 };
    if (strlen(note.key) > MOST_KEY) return flow_fail(FLOW_INVALID_ARGUMENT, "the key '%.40s...' of a note is too long for HDF5", note.key);
    if (strlen(note.text) >= UINT32_MAX) return flow_fail(FLOW_INVALID_ARGUMENT, "the note '%.200s' is longer than 4 GB", note.key);
    FLOW_TRY(flow_grow(&plan->notes, sizeof *plan->notes, plan->note_count + 1, &plan->note_capacity));
    plan->notes[plan->note_count++] = note;
    FLOW_TRY(mention_path(all, own ? writer->notes[i].path : item->name, -1, plan->note_count - 1, 0));
  }
  return FLOW_OK;
}

/* All mentions of all paths, in no order; sorted, equal ones are neighbours and become one node. */
static flow_status collect(const flow_tensor_writer *writer, flow_hdf5_plan *plan, mentions *all)
{
  FLOW_TRY(mention_path(all, "", -1, -1, 1));
  for (int i = 0; i < writer->group_count; i++) FLOW_TRY(mention_path(all, writer->groups[i], -1, -1, 1));
  for (int i = 0; i < writer->item_count; i++) FLOW_TRY(mention_path(all, writer->items[i].name, i, -1, 0));
  return collect_notes(writer, plan, all);
}

/* Appends a note to a node's; one with the key of an earlier note is left out. */
static void attach(flow_hdf5_plan *plan, flow_hdf5_node *node, int note)
{
  int *place = &node->first_note;
  for (; *place >= 0; place = &plan->notes[*place].next) {
    if (strcmp(plan->notes[*place].key, plan->notes[note].key) == 0) return;
  }
  *place = note;
  node->note_count++;
}

/* Joins what was said about one path. */
static flow_status join(flow_hdf5_plan *plan, flow_hdf5_node *node, const mention *more)
{
  if (more->is_group) node->is_group = 1;
  if (more->item >= 0 && node->item >= 0) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "two tensors to save have the name '%.*s'; give each its own", node->length, node->path);
  }
  if (more->item >= 0) node->item = more->item;
  if (more->note >= 0) attach(plan, node, more->note);
  if (node->item < 0 || !node->is_group) return FLOW_OK;
  return flow_fail(FLOW_INVALID_ARGUMENT, "'%.*s' is to be saved as a tensor and as a group; give one of them another name", node->length,
                   node->path);
}

/* Whether a path is inside of the group `parent`, at any depth; "" is the root. */
static int is_below(const flow_hdf5_node *node, const flow_hdf5_node *parent)
{
  if (parent->length == 0) return 1;
  return node->length > parent->length && node->path[parent->length] == '/' &&
         memcmp(node->path, parent->path, (size_t)parent->length) == 0;
}

/* Nodes in the order of their paths; each knows where what is below it ends. `open` is the way from the root to the
 * node: at most FLOW_HDF5_MOST_DEPTH - 1 parts (mention_path) and the root. all->count nodes is more than there will be. */
static flow_status make_nodes(flow_hdf5_plan *plan, const mentions *all)
{
  int open[FLOW_HDF5_MOST_DEPTH + 1], depth = 0;
  void *block;
  FLOW_TRY(flow_alloc((size_t)all->count * sizeof *plan->nodes, &block));
  plan->nodes = block;
  for (int i = 0; i < all->count; i++) {
    const mention *next = &all->list[i];
    if (i == 0 || compare_paths(&all->list[i - 1], next) != 0) {
      plan->nodes[plan->node_count++] = (flow_hdf5_node){ .path = next->path, .length = next->length, .item = -1, .first_note = -1 };
    }
    FLOW_TRY(join(plan, &plan->nodes[plan->node_count - 1], next));
  }
  for (int i = 0; i < plan->node_count; i++) {
    flow_hdf5_node *node = &plan->nodes[i];
    while (depth > 0 && !is_below(node, &plan->nodes[open[depth - 1]])) plan->nodes[open[--depth]].end = i;
    if (depth > 0) {
      flow_hdf5_node *parent = &plan->nodes[open[depth - 1]];
      parent->children++;
      node->name = parent->length > 0 ? parent->length + 1 : 0;
    }
    open[depth++] = i;
  }
  while (depth > 0) plan->nodes[open[--depth]].end = plan->node_count;
  return FLOW_OK;
}

/* Names are borrowed from the writer, which outlives the plan. Groups that no one named, such as a tensor's parents, are made here. */
flow_status flow_hdf5_make_tree(const flow_tensor_writer *writer, flow_hdf5_plan *plan)
{
  mentions all = { 0 };
  flow_status status = collect(writer, plan, &all);
  if (status == FLOW_OK) {
    qsort(all.list, (size_t)all.count, sizeof *all.list, compare_mentions);
    status = make_nodes(plan, &all);
  }
  flow_free(all.list);
  return status;
}
