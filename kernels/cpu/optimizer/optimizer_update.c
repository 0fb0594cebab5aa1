/* optimizer_update.c: see optimizer_update.h. Each formula is compiled for vectors once for each number of slots, so that its loop has no
 * branch for slots that are not there. */
#include "cpu/optimizer/optimizer_update.h"

#define NUMBER       vf
#define NUMBER_OF(x) vf_set((float)(x))
#define NAME(name)   name##_vf
#define FORMULA      ALWAYS_INLINE
#define SQRT(x)      vf_sqrt(x)
#define ABS(x)       vf_abs(x)
#define LARGER(a, b) vf_max(a, b)
#include "optimizer_formulas.inc"

#define LOAD(p)     (lanes == VL ? vf_load((p) + i) : vf_load_part((p) + i, lanes))
#define STORE(p, v) do { if (lanes == VL) vf_store((p) + i, v); else vf_store_part((p) + i, v, lanes); } while (0)

/* A function that optimizer_formulas.inc defines. */
typedef vf formula(const flow_update_form *form, const update_numbers_vf *u, vf g, vf w, vf *s);

/* An update as a loop sees it: w and slots from its first element on, where they go and where the old ones are. */
typedef struct arrays {
  float *w, *slots[FLOW_UPDATE_SLOTS];
  const float *old_w, *old_slots[FLOW_UPDATE_SLOTS], *g;
} arrays;

/* Elements [i, i + lanes), lanes <= VL. decayed: w -= w decay, decay being weight_decay times the learning rate, in float32 and before the
 * update, as Keras rounds it. Nothing that was not there before is ever in the place of the result: other workers may write the same. */
ALWAYS_INLINE void update_vector(formula *rule, const flow_update_form *form, const update_numbers_vf *u, const int decayed, vf decay,
                                 const arrays *a, int64_t i, int lanes)
{
  vf s[FLOW_UPDATE_SLOTS], old = LOAD(a->old_w);
  for (int k = 0; k < FLOW_UPDATE_SLOTS; k++) s[k] = k < form->slots ? LOAD(a->old_slots[k]) : vf_set(0);
  if (decayed) old -= old * decay;
  vf updated = rule(form, u, LOAD(a->g), old, s);
  for (int k = 0; k < form->slots; k++) STORE(a->slots[k], s[k]);
  STORE(a->w, updated);
}

/* n elements from `first` on; rule, slot_count and decayed are constants at every call. */
ALWAYS_INLINE void update_vectors(formula *rule, int slot_count, const int decayed, const update *whole, int64_t first, int64_t n,
                                  const float *g)
{
  const update_numbers_vf u = numbers_of_vf(&whole->scalars);
  const flow_update_form form = { .slots = slot_count, .nesterov = whole->form.nesterov, .centered = whole->form.centered };
  const vf decay = vf_set((float)whole->scalars.decay);
  arrays a = { .w = whole->w + first, .old_w = whole->w + whole->before + first, .g = g };
  for (int k = 0; k < slot_count; k++) {
    a.slots[k] = whole->slots[k] + first;
    a.old_slots[k] = a.slots[k] + whole->before;
  }
  int64_t i = 0;
  for (; i + VL <= n; i += VL) update_vector(rule, &form, &u, decayed, decay, &a, i, VL);
  if (i < n) update_vector(rule, &form, &u, decayed, decay, &a, i, (int)(n - i));
}

#define RULE(E, name)                                                                                            \
  ALWAYS_INLINE void update_##name(const update *u, const int decayed, int64_t first, int64_t n, const float *g) \
  {                                                                                                              \
    switch (u->form.slots) {                                                                                     \
    case 0: update_vectors(name##_vf, 0, decayed, u, first, n, g); return;                                       \
    case 1: update_vectors(name##_vf, 1, decayed, u, first, n, g); return;                                       \
    case 2: update_vectors(name##_vf, 2, decayed, u, first, n, g); return;                                       \
    default: update_vectors(name##_vf, 3, decayed, u, first, n, g); return;                                      \
    }                                                                                                            \
  }                                                                                                              \
  static void update_plain_##name(const update *u, int64_t first, int64_t n, const float *g)                     \
  {                                                                                                              \
    update_##name(u, 0, first, n, g);                                                                            \
  }                                                                                                              \
  static void update_decayed_##name(const update *u, int64_t first, int64_t n, const float *g)                   \
  {                                                                                                              \
    update_##name(u, 1, first, n, g);                                                                            \
  }
FLOW_UPDATES(RULE, )

void update_range(const update *u, int64_t first, int64_t n, const float *g)
{
  const int decayed = (float)u->scalars.decay != 0;
#define CASE(E, name) \
  if (u->op == FLOW_OP_##name) (decayed ? update_decayed_##name : update_plain_##name)(u, first, n, g);
  FLOW_UPDATES(CASE, )
#undef CASE
}
