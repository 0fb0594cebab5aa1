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

/* Elements [i, i + lanes), lanes <= VL. */
ALWAYS_INLINE void update_vector(formula *rule, const flow_update_form *form, const update_numbers_vf *u, float *w, float *const *slots,
                                 const float *g, int64_t i, int lanes)
{
  vf s[FLOW_UPDATE_SLOTS];
  for (int k = 0; k < FLOW_UPDATE_SLOTS; k++) s[k] = k < form->slots ? LOAD(slots[k]) : vf_set(0);
  vf updated = rule(form, u, LOAD(g), LOAD(w), s);
  for (int k = 0; k < form->slots; k++) STORE(slots[k], s[k]);
  STORE(w, updated);
}

/* n elements from `first` on; rule and slot_count are constants at every call. */
ALWAYS_INLINE void update_vectors(formula *rule, int slot_count, const update *whole, int64_t first, int64_t n, const float *g)
{
  const update_numbers_vf u = numbers_of_vf(&whole->scalars);
  const flow_update_form form = { .slots = slot_count, .nesterov = whole->form.nesterov, .centered = whole->form.centered };
  float *w = whole->w + first, *slots[FLOW_UPDATE_SLOTS];
  for (int k = 0; k < slot_count; k++) slots[k] = whole->slots[k] + first;
  int64_t i = 0;
  for (; i + VL <= n; i += VL) update_vector(rule, &form, &u, w, slots, g, i, VL);
  if (i < n) update_vector(rule, &form, &u, w, slots, g, i, (int)(n - i));
}

#define RULE(E, name)                                                                              \
  static void update_##name(const update *u, int64_t first, int64_t n, const float *g)            \
  {                                                                                               \
    switch (u->form.slots) {                                                                      \
      case 0:  update_vectors(name##_vf, 0, u, first, n, g); return;                              \
      case 1:  update_vectors(name##_vf, 1, u, first, n, g); return;                              \
      case 2:  update_vectors(name##_vf, 2, u, first, n, g); return;                              \
      default: update_vectors(name##_vf, 3, u, first, n, g); return;                              \
    }                                                                                             \
  }
FLOW_UPDATES(RULE, )

/* w -= w decay, decay being weight_decay times the learning rate, in float32 and before the update, as Keras rounds it. */
static void decay_weights(const update *u, int64_t first, int64_t n)
{
  float *w = u->w + first;
  vf decay = vf_set((float)u->scalars.decay);
  for (int64_t i = 0; i < n; i += VL) {
    int lanes = n - i < VL ? (int)(n - i) : VL;
    STORE(w, LOAD(w) - LOAD(w) * decay);
  }
}

void update_range(const update *u, int64_t first, int64_t n, const float *g)
{
  if ((float)u->scalars.decay != 0) decay_weights(u, first, n);
#define CASE(E, name) if (u->op == FLOW_OP_##name) update_##name(u, first, n, g);
  FLOW_UPDATES(CASE, )
#undef CASE
}
