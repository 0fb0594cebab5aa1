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

/* Elements [i, i + lanes), lanes <= VL. w -= w decay, decay being weight_decay times the learning rate, in float32 and before the update,
 * as Keras rounds it. Nothing that was not there before is ever in the place of the result: other workers may write the same. */
ALWAYS_INLINE void update_vector(formula *rule, const flow_update_form *form, const update_numbers_vf *u, float decay, float *w,
                                 float *const *slots, ptrdiff_t before, const float *g, int64_t i, int lanes)
{
  vf s[FLOW_UPDATE_SLOTS], old = LOAD(w + before);
  for (int k = 0; k < FLOW_UPDATE_SLOTS; k++) s[k] = k < form->slots ? LOAD(slots[k] + before) : vf_set(0);
  if (decay != 0) old -= old * vf_set(decay);
  vf updated = rule(form, u, LOAD(g), old, s);
  for (int k = 0; k < form->slots; k++) STORE(slots[k], s[k]);
  STORE(w, updated);
}

/* n elements from `first` on; rule and slot_count are constants at every call. */
ALWAYS_INLINE void update_vectors(formula *rule, int slot_count, const update *whole, int64_t first, int64_t n, const float *g)
{
  const update_numbers_vf u = numbers_of_vf(&whole->scalars);
  const flow_update_form form = { .slots = slot_count, .nesterov = whole->form.nesterov, .centered = whole->form.centered };
  const float decay = (float)whole->scalars.decay;
  const ptrdiff_t before = whole->before;
  float *w = whole->w + first, *slots[FLOW_UPDATE_SLOTS];
  for (int k = 0; k < slot_count; k++) slots[k] = whole->slots[k] + first;
  int64_t i = 0;
  for (; i + VL <= n; i += VL) update_vector(rule, &form, &u, decay, w, slots, before, g, i, VL);
  if (i < n) update_vector(rule, &form, &u, decay, w, slots, before, g, i, (int)(n - i));
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

void update_range(const update *u, int64_t first, int64_t n, const float *g)
{
#define CASE(E, name) if (u->op == FLOW_OP_##name) update_##name(u, first, n, g);
  FLOW_UPDATES(CASE, )
#undef CASE
}
